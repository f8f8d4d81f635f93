"""Ceilings of a machine by small products and short passes, which take a moment. They are as real, and lower."""

import functools

from ipexperf.bench.evidence import ceilings

EFFORT = ceilings.CeilingEffort(sizes=(64, 128), seconds=0.1, rounds=1, pass_bytes=2**22)
ceilings.measure = functools.partial(ceilings.measure, effort=EFFORT)
