"""The user's objects: analysis and factor of a matrix, independent of the backend."""
