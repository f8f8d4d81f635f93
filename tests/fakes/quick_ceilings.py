"""Ceilings of a machine by small products and short passes, which take a moment. They are as real, and lower."""

from ipexperf.bench.evidence import ceilings

ceilings.SIZES, ceilings.SECONDS, ceilings.ROUNDS = (64, 128), 0.1, 1
ceilings.PASS_BYTES, ceilings.PASS_CACHES = 2**22, 0
