"""`ipexperf nightly`: measure a night, accept what is well, and say what got worse, since when and why."""
