"""What a user holds: the analysis and the factor of a matrix, whatever computed them."""
