"""A suite with `perf(fn)` where ipexperf is not installed: a plain call, and nothing is measured."""

import importlib.util

import pytest

if importlib.util.find_spec("ipexperf") is None:

    @pytest.fixture
    def perf():
        return lambda function, *args, **kwargs: function(*args, **kwargs)
