"""Text, token after token: a small GPT reads prompts and writes on, on every device, dtype, mode and stack."""

import pytest


@pytest.mark.perf(models=["gpt_small"])
def test_generation(perf):
    perf()
