"""Language modelling with random weights: the outputs are compared with those in float64, and nothing is scored."""

from __future__ import annotations

from ipexperf.bench.networks.own_task import Own
from ipexperf.ext import register


class UntrainedLanguageModelling(Own):
    name = "untrained_language_modelling"
    unit = "{0} tokens"
    near = 0.75
    """Random weights amplify rounding: correct kernels with 4 bits a weight have an error of 0.4 in 30 layers."""
    products = True
    next_token = True


register(UntrainedLanguageModelling())
