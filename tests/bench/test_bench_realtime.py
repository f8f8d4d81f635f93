"""realtime: as many instances as have their cores alone, and a window of requests that begins for all at once."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipexperf.bench import measure, registry
from ipexperf.bench.modes import realtime
from ipexperf.case import NetworkCase

numbers = st.none() | st.just(realtime.FIT) | st.integers(1, 40).map(str)


def case(**knobs: str) -> NetworkCase:
    return NetworkCase("resnet18", "cpu", "fp32", "realtime", "stock", 1, 32, knobs=tuple(sorted(knobs.items())))


@pytest.mark.parametrize(
    ("there", "asked", "shares"),
    [
        (1, {}, [(0,)]),
        (2, {}, [(0, 1)]),
        (2, {"instances": "2"}, [(0,), (1,)]),
        (2, {"cores": "1"}, [(0,), (1,)]),
        (9, {}, [(0, 1, 2, 3), (4, 5, 6, 7)]),
        (9, {"instances": "4"}, [(0, 1), (2, 3), (4, 5), (6, 7)]),
        (9, {"instances": "1"}, [(0, 1, 2, 3)]),
        (9, {"instances": "2", "cores": "3"}, [(0, 1, 2), (3, 4, 5)]),
    ],
)
def test_instances_get_four_cores_or_what_fits(
    there: int, asked: dict[str, str], shares: list[tuple[int, ...]]
) -> None:
    """Four cores an instance, as many instances as fit; what is asked for goes first."""
    assert registry.modes.get("realtime").shares(case(**asked), range(there)) == shares


@given(numbers, numbers, st.integers(1, 64))
def test_no_core_is_shared_and_none_is_invented(instances: str | None, cores: str | None, there: int) -> None:
    """Where it is not refused, each instance has as many cores as the others, and none of theirs."""
    asked = {name: value for name, value in (("instances", instances), ("cores", cores)) if value}
    if realtime.too_many(instances, cores, there):
        assert {instances, cores} - {None, realtime.FIT}, "what fits is never too many"
        return
    shares = registry.modes.get("realtime").shares(case(**asked), range(there))
    held = [core for share in shares for core in share]
    assert len(held) == len(set(held)) == len(shares) * len(shares[0])
    assert set(held) <= set(range(there))
    assert {len(share) for share in shares} == {len(shares[0])}


def test_a_window_of_requests() -> None:
    """Each request has its own latency, none is a block, and the window begins no earlier than it was told."""
    calls = []
    at = time.perf_counter() + 0.05
    reply = measure.serve(lambda: calls.append(time.perf_counter()), lambda: None, at, 0.02)
    assert len(reply["latencies"]) == len(calls) > 1
    assert min(calls) >= reply["begin"] >= at
    assert reply["end"] >= at + 0.02
    assert sum(reply["latencies"]) == pytest.approx(reply["end"] - reply["begin"])


def test_a_window_that_was_missed_still_has_one_request() -> None:
    """A worker that hears of its window after it is over says so by when it began, and not by an empty answer."""
    reply = measure.serve(lambda: None, lambda: None, time.perf_counter() - 1.0, 0.5)
    assert len(reply["latencies"]) == 1
