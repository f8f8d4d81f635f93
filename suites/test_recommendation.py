"""Recommendation: DLRM on ratings of films."""

import pytest


@pytest.mark.perf(models=["dlrm"])
def test_dlrm(perf):
    perf()
