"""Image classification: the ResNets, trained and asked, on every device, dtype, mode and stack that was asked for."""

import pytest


@pytest.mark.perf(models=["resnet18", "resnet50"])
def test_resnet(perf):
    perf()
