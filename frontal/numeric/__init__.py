"""Rules that decide what a solution is worth, stated once for every place that computes one."""
