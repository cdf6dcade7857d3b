"""Tests of factors: solutions, new values, failures, judgement."""
