"""Small systems: factorized and solved in one compiled call each."""
