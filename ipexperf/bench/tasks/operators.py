"""Operators of a network: their outputs are compared with those in float64, and nothing is scored."""

from __future__ import annotations

from ipexperf.bench import registry
from ipexperf.bench.networks.own_task import Own


class Operators(Own):
    name = "operators"
    unit = "{0} tokens"
    products = True


registry.tasks.add("operators", Operators())
