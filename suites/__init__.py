"""The shipped suites. `pytest --pyargs ipexperf.suites` runs them where ipexperf is installed."""
