"""Measurements of this package beside other solvers: `python -m benchmarks.<room>.<script>`.

harness: problems, peers, clocks, processes and records, which all measurements share
report: tables, README and charts from the records in results
cpu, gpu: sparse systems on processors, and on a GPU beside cuDSS
dense: many dense matrices on a GPU beside the vendor's libraries
trust: wrong answers, counted over thousands of hard systems
"""
