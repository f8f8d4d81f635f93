"""Image classification: training and inference on every requested device, dtype, mode and stack."""

import pytest


@pytest.mark.perf(models=["resnet18", "resnet50"])
def test_resnet(perf):
    perf()


@pytest.mark.perf(models=["resnext101_32x16d"])
def test_resnext(perf):
    perf()


@pytest.mark.perf(models=["vgg11"])
def test_vgg(perf):
    perf()


@pytest.mark.perf(models=["shufflenet_v2_x1_0"])
def test_shufflenet(perf):
    perf()


@pytest.mark.perf(models=["mobilenet_v2"])
def test_mobilenet(perf):
    perf()
