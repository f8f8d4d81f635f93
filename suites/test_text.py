"""Text classification: BERT's encoders on definitions of words, on every device, dtype, mode and stack asked for."""

import pytest


@pytest.mark.perf(models=["bert_base", "bert_large", "distilbert", "minilm"])
def test_text(perf):
    perf()
