"""`ipexperf nightly`: a night that measures, accepts what is well, and says of what is not what, since when and why."""
