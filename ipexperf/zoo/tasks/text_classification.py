"""Text classification. Inputs are token ids and a mask of the padding."""

from __future__ import annotations

from ipexperf.ext import register
from ipexperf.zoo.tasks.classification import Classification


class TextClassification(Classification):
    name = "text_classification"
    products = True
    unit = "{0} tokens"
    inputs = 2


register(TextClassification())
