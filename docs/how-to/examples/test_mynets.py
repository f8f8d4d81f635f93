"""The performance test of networks that were named: it lies in your repository, beside your other tests."""

import pytest


@pytest.mark.perf(own=True)
def test_mynets(perf):
    perf()
