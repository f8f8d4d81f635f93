"""IPEX's streams in one process with Intel's OpenMP preloaded, honest and not. Prints checks."""

import dataclasses
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "bench"))

import bench_cases

from ipexperf.bench import registry
from ipexperf.bench.machine import placement
from ipexperf.bench.modes import multistream

Checks = dict[str, tuple[bool, str]]
ALL = placement.allowed()


def proven(streams: int, cores: Sequence[int], lie: Callable[..., Any] | None = None) -> Checks:
    """All that a session proves, with its accuracy; `lie` makes the streams in place of the mode."""
    bench = bench_cases.bench(
        bench_cases.network, "multistream", registry.devices.get("cpu"), "ipex", streams=str(streams)
    )
    bench = dataclasses.replace(bench, settings=dataclasses.replace(bench.settings, placement={"cores": cores}))
    honest = multistream.streamed
    multistream.streamed = lie or honest
    try:
        session = bench.mode.open(bench)
        session.sample(lambda: None, 1, 1)
        return bench_cases.as_json([*session.proof(), *session.accuracy()[1]])
    finally:
        multistream.streamed = honest


def main() -> None:
    registry.stacks.get("ipex").start()
    first, last = ALL[:1], ALL[-1:]
    results = {"two": proven(2, ALL[:2]), "one": proven(1, ALL[:2])}
    streamed = multistream.streamed
    results["all in one"] = proven(2, ALL[:2], lambda network, cores, _: streamed(network, cores, 1))
    results["other cores"] = proven(1, first, lambda network, _, streams: streamed(network, last, streams))
    results["fewer cores"] = proven(1, ALL[:2], lambda network, _, streams: streamed(network, last, streams))

    def turned_round(*arguments: Any) -> Any:
        """Streams whose answers are joined in another order."""
        made = streamed(*arguments)
        made.register_forward_hook(lambda _, __, outputs: outputs.flip(0))
        return made

    results["in another order"] = proven(2, ALL[:2], turned_round)
    json.dump(results, sys.stdout)


if __name__ == "__main__":
    main()
