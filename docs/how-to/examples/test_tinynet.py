"""The performance test of the example network."""

import pytest


@pytest.mark.perf(models=["tinynet"])
def test_tinynet(perf):
    perf()
