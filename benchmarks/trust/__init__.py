"""Wrong answers, counted over thousands of small hard systems."""
