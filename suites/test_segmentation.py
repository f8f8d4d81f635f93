"""Segmentation: roads in a satellite image, in small tiles and in those of the competition."""

import pytest


@pytest.mark.perf(models=["unet_resnet34", "unet_resnet34_512"])
def test_roads(perf):
    perf()
