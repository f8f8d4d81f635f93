"""`ipexperf prove`: what any process ran of oneDNN, without its knowing and without a clock."""
