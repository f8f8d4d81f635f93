"""Data-parallel training, without its processes: what ranks tell is held against one another, and failures are told."""

import multiprocessing
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import pytest

from ipexperf.bench import registry
from ipexperf.bench.cell import Settings
from ipexperf.bench.modes import _ranks
from ipexperf.bench.modes.train_ddp import DdpSession
from ipexperf.case import NetworkCase
from ipexperf.errors import WorkerError
from ipexperf.result import Check
from ipexperf.zoo.datasets.digits import Digits

CORES = list(range(5))


class FixedReplies:
    """Ranks that are nothing but what they say."""

    def __init__(self, *replies: Any) -> None:
        self.replies = list(replies)

    def ask(self, _: str, **__: Any) -> list[Any]:
        return self.replies


def rank(number: int, **differing: Any) -> dict[str, Any]:
    """What the rank of this number tells of itself, when all is well with two ranks on four cores."""
    cores = CORES[number * 2 : number * 2 + 2]
    return {
        "checks": [Check("dtype", True, "float32 x7", "float32 in all")],
        "ranks": 2,
        "rank": number,
        "backend": "gloo",
        "cores": cores,
        "threads": 2,
        "weights": "abc",
        "loss": 2.0 + number,
        "pid": 100 + number,
        **differing,
    }


def session(*replies: Any, count: int = 2, cores: int = 5) -> DdpSession:
    """A session whose ranks have said this."""
    opened = DdpSession.__new__(DdpSession)
    opened.count, opened.cores, opened.backend, opened._block = count, cores, "gloo", 1
    opened.ranks = FixedReplies(*replies)  # type: ignore[assignment]
    return opened


def failed(checks: list[Check]) -> set[str]:
    return {check.name for check in checks if not check.ok}


@pytest.mark.parametrize(
    ("lie", "name"),
    [
        ({"ranks": 1}, "ranks"),
        ({"rank": 0}, "ranks"),
        ({"pid": 100}, "ranks"),
        ({"backend": "mpi"}, "backend"),
        ({"cores": [1, 2]}, "rank_cores"),
        ({"cores": [2]}, "rank_cores"),
        ({"loss": 2.0}, "own_batches"),
        ({"weights": "abd"}, "weights_equal"),
    ],
)
def test_a_rank_that_is_not_what_it_should_be_is_caught(lie: dict[str, Any], name: str) -> None:
    """Another group, the same process twice, another backend, another's core or batches, and weights of its own."""
    assert failed(session(rank(0), rank(1, **lie)).proof()) == {name}


def test_one_rank_that_fails_a_check_fails_it_for_all() -> None:
    """A rank in another dtype is told by its number, beside what the others found."""
    other = Check("dtype", False, "bfloat16 x7", "float32 in all")
    check = session(rank(0), rank(1, checks=[other])).proof()[0]
    assert not check.ok
    assert check.found == "rank 0: float32 x7; rank 1: bfloat16 x7"


def test_a_sample_lasts_from_the_first_begin_to_the_last_end() -> None:
    """Ranks on one clock: the slower one counts, CPU time and run delay are those of all."""
    first = [(10.0, 11.0, 0.5, 0.1), (20.0, 22.0, 1.0, 0.0)]
    second = [(10.2, 11.4, 0.7, 0.1), (19.8, 21.0, 1.0, 0.2)]
    samples = session(first, second).sample(lambda: None, 2, 2)
    assert samples == [pytest.approx((0.7, 0.6, 0.1)), pytest.approx((1.1, 1.0, 0.1))]


def test_memory_is_that_of_all_ranks_and_a_wait_is_that_of_the_slowest() -> None:
    """What is held adds up; what the others wait for does not."""
    device = registry.devices.get("cpu")
    assert session({"peak_memory": 3}, {"peak_memory": 4}).memory(device) == {"peak_memory": 7}
    waits = [{"input_time": wait} for wait in (0.1, 0.3)]
    assert session(*waits).metrics() == {"input_time": 0.3}


def test_cores_that_no_rank_has_are_told() -> None:
    """Five cores for two ranks leave one idle, which a reader of the numbers must know."""
    assert session([], []).notes() == ["1 of 5 cores idle: 2 ranks have 2 each"]
    assert session([], [], cores=4).notes() == []


@dataclass
class KilledProcess:
    """A process that was killed by SIGBUS."""

    exitcode: int = -signal.SIGBUS

    def join(self, seconds: float) -> None:
        del seconds


@pytest.fixture
def lines() -> Iterator[tuple[_ranks.Ranks, list[Connection]]]:
    """Two ranks without processes, and their ends of the lines."""
    pairs = [multiprocessing.Pipe() for _ in range(2)]
    ranks = _ranks.Ranks.__new__(_ranks.Ranks)
    ranks._lines, ranks._say = [ours for ours, _ in pairs], lambda _: None
    ranks._processes = [KilledProcess(), KilledProcess()]  # type: ignore[list-item]
    yield ranks, [theirs for _, theirs in pairs]
    for pair in pairs:
        for line in pair:
            line.close()


def test_ranks_that_do_not_meet_in_time_are_an_error(lines: tuple[_ranks.Ranks, list[Connection]]) -> None:
    """As under a container's rules for system calls, where oneCCL waits for ever."""
    ranks, (first, _) = lines
    first.send(("reply", None))
    with pytest.raises(TimeoutError):
        ranks._replies(0.01)


def test_a_rank_that_fails_is_told_while_the_others_wait_for_it(
    lines: tuple[_ranks.Ranks, list[Connection]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other will never answer: it waits for the one that failed."""
    monkeypatch.setattr(_ranks, "GRACE_SECONDS", 0.05)
    ranks, (_, second) = lines
    second.send(("failure", ("out_of_memory", "rank 1: MemoryError: full")))
    with pytest.raises(WorkerError, match="rank 1: MemoryError: full") as error:
        ranks.ask("step")
    assert error.value.outcome == "out_of_memory"


@pytest.mark.parametrize("unread", [False, True])
def test_a_death_is_told_before_what_it_led_to(lines: tuple[_ranks.Ranks, list[Connection]], *, unread: bool) -> None:
    """One rank complains that the other is gone: that the other was killed is the reason, also before it read."""
    ranks, (first, second) = lines
    first.send(("failure", ("error", "rank 0: RuntimeError: connection closed by peer")))
    if unread:
        ranks._lines[1].send("unread")
    second.close()
    with pytest.raises(WorkerError, match="rank 1 was killed by SIGBUS") as error:
        ranks.ask("step")
    assert error.value.outcome == "crashed"


def test_more_ranks_than_cores_end_with_a_sentence() -> None:
    """A worker that may use fewer cores than the plan thought says so, and starts nothing."""
    many = len(os.sched_getaffinity(0)) + 1
    path, _ = Digits().find(None)
    knobs = (("ranks", str(many)),)
    case = NetworkCase("resnet18", "cpu", "fp32", "train_ddp", "stock", 16, 32, data="digits", knobs=knobs)
    bench = registry.workbench(case, Settings(data_file=path), print)
    with pytest.raises(WorkerError, match=f"{many} ranks need as many cores, and the worker may use {many - 1}"):
        DdpSession(bench)


@pytest.mark.torch
def test_the_digest_of_weights_differs_by_a_single_bit() -> None:
    """Two ranks whose weights differ in the last bit of one number are not equal."""
    import torch

    rank = _ranks.RankSession.__new__(_ranks.RankSession)
    pixels = torch.ones(4, 2, 1, 1).to(memory_format=torch.channels_last)
    values = torch.ones(3, dtype=torch.bfloat16), torch.ones(2), pixels, torch.ones(())
    rank.trained = list(values)
    before = rank.digest()
    assert rank.digest() == before
    values[1][1] = torch.nextafter(values[1][1], torch.tensor(2.0))
    assert rank.digest() != before
