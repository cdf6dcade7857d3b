"""The protocol of backends, and the choice among them."""
