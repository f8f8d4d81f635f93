"""A new kind of card that torch knows as `torch.late`, registered for the suite by `--perf-load=late_leaf.py`."""

from __future__ import annotations

from ipexperf.ext import Accelerator, register


class Late(Accelerator):
    """What such a card declares: its name in torch, and the variable that selects among several."""

    name = "late"
    variable = "LATE_VISIBLE_CARDS"


register(Late())
