"""Many systems of one pattern in one launch."""
