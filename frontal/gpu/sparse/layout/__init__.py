"""Addresses in the memory of a device: panels, contribution blocks, messages."""
