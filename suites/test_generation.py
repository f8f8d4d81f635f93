"""Text generation with a small GPT: prefill and decode, on every requested device, dtype, mode and stack."""

import pytest


@pytest.mark.perf(models=["gpt_small"])
def test_generation(perf):
    perf()
