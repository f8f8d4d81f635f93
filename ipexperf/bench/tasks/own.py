"""The user's own network, where nothing is known of its training."""

from __future__ import annotations

from ipexperf.bench import registry
from ipexperf.bench.networks.own_task import Own

registry.tasks.add("own", Own())
