"""Text generation with decoders: prefill and decode, on every requested device, dtype, mode and stack."""

import pytest


@pytest.mark.perf(models=["gpt_small", "llama_small", "llama_135m", "qwen_500m", "llama_1b"])
def test_generation(perf):
    perf()
