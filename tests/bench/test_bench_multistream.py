"""multistream: every stream works on its cores and its part of the batch, and what only says so is caught."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from bench_cases import HEAVY_STEP, alone, bench, failed, named, needs_ipex, network
from hypothesis import given
from hypothesis import strategies as st

from ipexperf.bench import registry
from ipexperf.bench.machine import facts
from ipexperf.bench.machine.placement import ranges
from ipexperf.bench.modes import multistream
from ipexperf.errors import WorkerError

torch = pytest.importorskip("torch")

if TYPE_CHECKING:
    from ipexperf.bench.api import Session

ALL = sorted(os.sched_getaffinity(0))
FIRST, SECOND = ALL[:1], ALL[1:2]
IOMP5 = facts.gather().iomp5
Bindings = Sequence[Sequence[int]]
needs_iomp5 = pytest.mark.skipif(not IOMP5, reason="needs libiomp5.so: pip install intel-openmp")
pytestmark = pytest.mark.skipif(len(ALL) < 2, reason="two streams need two cores")


@given(st.lists(st.integers(), max_size=70), st.integers(1, 70))
def test_nothing_is_lost_or_doubled_when_it_is_shared_out(values: list[int], streams: int) -> None:
    """The shares are in order and together the whole; no two differ by more than one, and the first have more."""
    shares = multistream.shared_out(values, streams)
    sizes = [len(share) for share in shares]
    assert [value for share in shares for value in share] == values
    assert len(shares) == streams
    assert sizes == sorted(sizes, reverse=True)
    assert max(sizes) - min(sizes) <= 1


class Threads:
    """Streams as IPEX has them, made of Python's threads: each bound to its cores."""

    def __init__(self, network: Any, bindings: Bindings) -> None:
        self.network = network
        self.last: list[int] = []
        self.pools = [
            ThreadPoolExecutor(1, initializer=os.sched_setaffinity, initargs=(0, cores)) for cores in bindings
        ]

    def __call__(self, images: Any) -> Any:
        return self.joined(self.answers(self.split(images)))

    def split(self, images: Any) -> list[Any]:
        return list(multistream.shared_out(images, len(self.pools)))

    def answers(self, parts: list[Any]) -> list[Any]:
        self.last = [len(part) for part in parts]
        waiting = [pool.submit(self.answer, part) for pool, part in zip(self.pools, parts, strict=True)]
        return [future.result() for future in waiting]

    def answer(self, part: Any) -> Any:
        with torch.no_grad():
            return self.network(part)

    def joined(self, answers: list[Any]) -> Any:
        return torch.cat(answers)


class InOne(Threads):
    """Has all its streams' parts worked off by the first."""

    def answers(self, parts: list[Any]) -> list[Any]:
        self.last = [len(part) for part in parts]
        return [self.pools[0].submit(self.answer, part).result() for part in parts]


class Shuffled(Threads):
    """Joins its streams' answers in another order."""

    def joined(self, answers: list[Any]) -> Any:
        return torch.cat(answers[::-1])


class Forgetful(Threads):
    """Loses the last image."""

    def split(self, images: Any) -> list[Any]:
        return super().split(images[:-1])


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Session]:
    """A session on stock PyTorch whose streams are threads of ours."""

    def opened(kind: type[Threads] = Threads, bindings: Bindings = (FIRST, SECOND)) -> Session:
        stack = registry.stacks.get("stock")
        monkeypatch.setattr(stack, "streamed", lambda network, *_: kind(network, bindings))
        monkeypatch.setattr(stack, "parts", lambda network: network.last)
        case = bench(network, "multistream", registry.devices.get("cpu"), streams="2")
        placed = dataclasses.replace(case.settings, placement={"cores": ALL[:2]})
        return case.mode.open(dataclasses.replace(case, settings=placed))

    return opened


def test_two_streams_share_a_batch(opened: Callable[..., Session]) -> None:
    """Each thread runs the whole network on its own core, and on half of the batch; kernels are seen in both."""
    session = opened()
    checks = session.proof()
    assert failed(checks) == set()
    assert named(checks, "streams").found == f"2 threads with {HEAVY_STEP} and {HEAVY_STEP} operators"
    assert named(checks, "stream_cores").found == f"streams on cores {ALL[0]} and {ALL[1]}, {ranges(ALL[:2])} busy"
    assert named(checks, "split").found == "8 + 8 images"
    assert named(checks, "dtype").found == f"float32 x{2 * HEAVY_STEP}"
    assert failed(session.accuracy()[1]) == set()


@pytest.mark.parametrize(
    ("kind", "caught"),
    [
        (InOne, {"streams", "stream_cores"}),
        (Shuffled, {"joined"}),
        (Forgetful, {"split", "joined"}),
    ],
)
def test_streams_that_do_not_share_the_work_are_caught(
    opened: Callable[..., Session], kind: type[Threads], caught: set[str]
) -> None:
    """One thread for all, answers in another order, an image that nobody looked at."""
    assert failed(opened(kind).proof()) >= caught


@pytest.mark.parametrize("bindings", [(FIRST, FIRST), (ALL[:2], ALL[:2])])
def test_streams_on_other_cores_are_caught(opened: Callable[..., Session], bindings: Bindings) -> None:
    """Two on one core, and two that the kernel may move about on both."""
    assert failed(opened(bindings=bindings).proof()) == {"stream_cores"}


def test_a_stream_outside_the_pool_is_caught() -> None:
    """A thread on a core that was not asked for is in no share."""
    with ThreadPoolExecutor(1, initializer=os.sched_setaffinity, initargs=(0, SECOND)) as pool:
        thread = pool.submit(multistream.threading.get_native_id).result()
        check = multistream.check_cores([thread], {thread}, FIRST, 1)
        assert (check.ok, check.found) == (False, f"streams on cores {SECOND[0]}, none busy")
        assert multistream.check_cores([thread], {thread}, SECOND, 1).ok
        assert not multistream.check_cores([thread], set(), SECOND, 1).ok, "bound there, and never ran"


def test_more_streams_than_the_worker_has_cores_are_refused() -> None:
    """IPEX would make fewer of them, and warn: the label would lie."""
    case = bench(network, "multistream", registry.devices.get("cpu"), streams=str(len(ALL) + 1))
    with pytest.raises(
        WorkerError, match=f"{len(ALL) + 1} streams need as many cores, but only {len(ALL)} may be used"
    ):
        case.mode.open(case)


Told = dict[str, dict[str, tuple[bool, str]]]


@pytest.fixture(scope="module")
def told() -> Told:
    """What a process with IPEX, and with Intel's OpenMP preloaded, proved of each."""
    affinity = {"KMP_AFFINITY": "granularity=fine,compact,1,0", "KMP_BLOCKTIME": "1"}  # as the launcher sets them
    found: Told = alone("ipex_streams.py", LD_PRELOAD=IOMP5, OMP_NUM_THREADS="2", **affinity)
    return found


def fails(checks: dict[str, tuple[bool, str]]) -> set[str]:
    return {name for name, (ok, _) in checks.items() if not ok}


@needs_ipex
@needs_iomp5
@pytest.mark.parametrize(("made", "parts"), [("two", "8 + 8 images"), ("one", "16 images")])
def test_ipexs_streams_are_proven(told: Told, made: str, parts: str) -> None:
    """Its threads are seen with their operators, their cores and their parts; a stream alone is the caller's thread."""
    assert fails(told[made]) == set()
    assert told[made]["split"][1] == parts
    assert told[made]["stream_cores"][1].endswith(f"{ranges(ALL[:2])} busy")
    assert {"dtype", "jit", "graph_prepack", "fidelity", "joined"} <= set(told[made])


@needs_ipex
@needs_iomp5
@pytest.mark.parametrize(
    ("liar", "caught"),
    [("all in one", {"streams", "split"}), ("other cores", {"stream_cores"}), ("fewer cores", {"stream_cores"})],
)
def test_ipexs_streams_under_another_label_are_caught(told: Told, liar: str, caught: set[str]) -> None:
    """A module that runs everything on one stream, a pool elsewhere, and a pool that is smaller than the label's."""
    assert fails(told[liar]) >= caught
