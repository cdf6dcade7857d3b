"""Tables, charts and the README's numbers, from the records in benchmarks/results."""
