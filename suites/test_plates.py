"""Number plate recognition: LPRNet with CTC, in half the width of the paper and in full width."""

import pytest


@pytest.mark.perf(models=["lprnet", "lprnet_paper"])
def test_lprnet(perf):
    perf()
