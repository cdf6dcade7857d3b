"""The documentation, and the code that makes its pictures and pages."""
