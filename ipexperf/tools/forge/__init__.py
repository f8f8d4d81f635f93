"""`ipexperf comment`: what a pull request costs, as one comment on it."""
