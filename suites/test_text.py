"""Text classification: BERT on sentences, on every requested device, dtype, mode and stack."""

import pytest


@pytest.mark.perf(models=["bert_base", "bert_large", "distilbert", "minilm"])
def test_text(perf):
    perf()
