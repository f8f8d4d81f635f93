"""multistream: every stream works on its cores and its part of the batch, and what only says so is caught."""

import contextlib
import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from bench_cases import alone, bench, failures, needs_ipex, network
from hypothesis import given
from hypothesis import strategies as st

from ipexperf.bench import registry
from ipexperf.bench.machine import facts
from ipexperf.bench.machine.placement import ranges
from ipexperf.bench.modes import multistream
from ipexperf.errors import WorkerError

pytest.importorskip("torch")

ALL = sorted(os.sched_getaffinity(0))
FIRST, SECOND = ALL[:1], ALL[1:2]
IOMP5 = facts.gather().iomp5
needs_iomp5 = pytest.mark.skipif(not IOMP5, reason="needs libiomp5.so: pip install intel-openmp")
pytestmark = pytest.mark.skipif(len(ALL) < 2, reason="two streams need two cores")


@given(st.lists(st.integers(), max_size=70), st.integers(1, 70))
def test_nothing_is_lost_or_doubled_when_it_is_shared_out(values: list[int], streams: int) -> None:
    """The shares are in order and together the whole; no two differ by more than one, and the first have more."""
    shares = multistream.split_evenly(values, streams)
    sizes = [len(share) for share in shares]
    assert [value for share in shares for value in share] == values
    assert len(shares) == streams
    assert sizes == sorted(sizes, reverse=True)
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize(
    ("bindings", "pool", "ok"),
    [
        ([FIRST, SECOND], ALL[:2], True),
        ([FIRST, FIRST], ALL[:2], False),
        ([ALL[:2], ALL[:2]], ALL[:2], False),
        ([SECOND], FIRST, False),
    ],
    ids=["each on its own", "two on one", "wherever the kernel likes", "outside the pool"],
)
def test_streams_on_other_cores_are_caught(bindings: list[Sequence[int]], pool: Sequence[int], *, ok: bool) -> None:
    with contextlib.ExitStack() as running:
        pools = [ThreadPoolExecutor(1, initializer=os.sched_setaffinity, initargs=(0, cores)) for cores in bindings]
        threads = [running.enter_context(executor).submit(threading.get_native_id).result() for executor in pools]
        assert multistream.check_cores(threads, set(threads), pool, len(threads)).ok is ok
        assert not multistream.check_cores(threads, set(), pool, len(threads)).ok, "bound there, and never ran"


def test_more_streams_than_the_worker_has_cores_are_refused() -> None:
    """IPEX would make fewer of them, and warn: the label would lie."""
    case = bench(network, "multistream", registry.devices.get("cpu"), streams=str(len(ALL) + 1))
    with pytest.raises(
        WorkerError, match=f"{len(ALL) + 1} streams need as many cores, but only {len(ALL)} may be used"
    ):
        case.mode.open(case)


@pytest.fixture(scope="module")
def results() -> dict[str, Any]:
    """What a process with IPEX, and with Intel's OpenMP preloaded, proved of each."""
    affinity = {"KMP_AFFINITY": "granularity=fine,compact,1,0", "KMP_BLOCKTIME": "1"}  # as the launcher sets them
    return alone("ipex_streams.py", LD_PRELOAD=IOMP5, OMP_NUM_THREADS="2", **affinity)


@needs_ipex
@needs_iomp5
@pytest.mark.parametrize(("made", "parts"), [("two", "8 + 8 images"), ("one", "16 images")])
def test_ipexs_streams_are_proven(results: dict[str, Any], made: str, parts: str) -> None:
    """Its threads are seen with their operators, their cores and their parts; a stream alone is the caller's thread."""
    assert failures(results[made]) == {}
    assert results[made]["split"][1] == parts
    assert results[made]["stream_cores"][1].endswith(f"{ranges(ALL[:2])} busy")
    assert {"dtype", "jit", "graph_prepack", "fidelity", "joined"} <= set(results[made])


@needs_ipex
@needs_iomp5
@pytest.mark.parametrize(
    ("liar", "caught"),
    [
        ("all in one", {"streams", "split"}),
        ("other cores", {"stream_cores"}),
        ("fewer cores", {"stream_cores"}),
        ("in another order", {"joined"}),
    ],
)
def test_ipexs_streams_under_another_label_are_caught(results: dict[str, Any], liar: str, caught: set[str]) -> None:
    """A module that runs everything on one stream, a pool elsewhere or too small, and answers in disorder."""
    assert failures(results[liar]).keys() >= caught
