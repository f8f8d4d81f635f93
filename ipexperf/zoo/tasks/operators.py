"""Operators of a network: their outputs are compared with those in float64, and nothing is scored."""

from __future__ import annotations

from ipexperf.bench.networks.own_task import Own
from ipexperf.ext import register


class Operators(Own):
    name = "operators"
    unit = "{0} tokens"
    products = True


register(Operators())
