"""Number plates, read in one piece: LPRNet with CTC, in half the width of the paper and in its own."""

import pytest


@pytest.mark.perf(models=["lprnet", "lprnet_paper"])
def test_lprnet(perf):
    perf()
