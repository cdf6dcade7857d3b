"""Many dense matrices on a GPU: a ladder of implementations, and the public functions."""
