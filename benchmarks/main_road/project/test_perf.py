import pytest


@pytest.mark.perf
def test_net(perf):
    perf()
