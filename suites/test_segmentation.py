"""Segmentation: roads from above, in small tiles and in large ones."""

import pytest


@pytest.mark.perf(models=["unet_resnet34", "unet_resnet34_512"])
def test_roads(perf):
    perf()
