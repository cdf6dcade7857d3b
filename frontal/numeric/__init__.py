"""Rules for the accuracy of a solution, shared by all code that computes one."""
