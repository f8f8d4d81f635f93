"""Lets no measurement be contended: the machine that runs these tests is anybody's. For conftests and --perf-load."""

from dataclasses import fields
from math import inf

from ipexperf.conduct import gate
from ipexperf.judge.policy import GatePolicy

gate.POLICY = GatePolicy(**{limit.name: inf for limit in fields(GatePolicy) if limit.name != "name"})
