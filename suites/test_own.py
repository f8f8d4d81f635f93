"""Your own networks: `pytest suites/ --model mynets:small`, or torchvision.models:vgg11@3x64x64."""

import pytest


@pytest.mark.perf(own=True)
def test_own(perf):
    perf()
