"""Updates of Cholesky factors: the factor of A + C C^H or A - C C^H from that of A."""
