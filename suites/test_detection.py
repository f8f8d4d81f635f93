"""Object detection in photographs."""

import pytest


@pytest.mark.perf(models=["ssd_resnet34", "faster_rcnn"])
def test_detection(perf):
    perf()
