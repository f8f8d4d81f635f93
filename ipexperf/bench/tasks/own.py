"""The task of a user's own network whose training is unknown."""

from __future__ import annotations

from ipexperf.bench import registry
from ipexperf.bench.networks.own_task import Own

registry.tasks.add("own", Own())
