"""Object detection in photographs, and the networks of a face detector."""

import pytest


@pytest.mark.perf(models=["ssd_resnet34", "faster_rcnn", "mtcnn_pnet", "mtcnn_rnet", "mtcnn_onet"])
def test_detection(perf):
    perf()
