"""What all measurements share: problems, peers, clocks, processes and records."""
