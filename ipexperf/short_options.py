"""Opt in to `--device` and the other short option names: `pytest_plugins = ["ipexperf.short_options"]` in a conftest.

Without it `--perf-device` and its like are the only names, because many projects declare a `--device` of their own.
"""
