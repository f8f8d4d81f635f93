"""What was seen on which hardware: the run of `ipexperf evidence`, its files, and the tables made of them."""
