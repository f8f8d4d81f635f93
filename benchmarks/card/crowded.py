"""A pytest plugin (`-p crowded`) for runs that prove and do not measure: they accept that others work beside them."""

import math

import ipexperf.conduct.gate
from ipexperf.conduct.gate import GatePolicy

ipexperf.conduct.gate.POLICY = GatePolicy(others=math.inf, steal=math.inf, held_up=math.inf, memory_pressure=math.inf)
