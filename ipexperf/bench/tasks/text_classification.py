"""One of several classes for each text, which comes as numbers of tokens and a mask of those that are filled up."""

from __future__ import annotations

from ipexperf.bench import registry
from ipexperf.bench.tasks.classification import Classification


class TextClassification(Classification):
    name = "text_classification"
    unit = "{0} tokens"
    inputs = 2


registry.tasks.add("text_classification", TextClassification())
