"""The protocol of the backends, and the choice of one."""
