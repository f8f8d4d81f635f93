"""Functions that a test measures: `perf(fn, ...)` and `benchmark(fn, ...)`."""
