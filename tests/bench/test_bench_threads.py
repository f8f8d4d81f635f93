"""What a process' own threads and children ran, and what its steps waited for others."""

import subprocess
import sys
import threading
import time

import pytest

from ipexperf.bench.threads import Accounts, Threads

MAIN, POOL, SORTER, CHILD = 1, 2, 3, -9


def sampled(*samples: tuple[dict[int, float], dict[int, float]]) -> list[float]:
    """What the steps of each sample waited for others. Each is what threads ran and waited in its second."""
    threads, waits = Threads(), []
    before = Accounts(0.0, 0.0, {}, {})
    for ran, waited in samples:
        total = before.cpu + sum(seconds for key, seconds in ran.items() if key > 0)
        after = Accounts(
            total,
            0.0,
            {**before.ran, **{key: before.ran.get(key, 0.0) + seconds for key, seconds in ran.items()}},
            {**before.waited, **{key: before.waited.get(key, 0.0) + seconds for key, seconds in waited.items()}},
        )
        cpu, wait = threads.sampled(before, after, 1.0)
        assert cpu == pytest.approx(after.cpu - before.cpu)
        waits.append(wait)
        before = after
    return waits


USUAL = ({MAIN: 1.0, POOL: 0.9}, {MAIN: 0.0, POOL: 0.1})


def test_what_threads_of_every_step_wait_is_for_others() -> None:
    assert sampled(USUAL, USUAL, ({MAIN: 0.6, POOL: 0.5}, {MAIN: 0.4, POOL: 0.5})) == pytest.approx([0.1, 0.1, 0.9])


@pytest.mark.parametrize("own", [SORTER, CHILD])
def test_a_thread_or_child_that_few_steps_have_makes_no_others_of_its_own(own: int) -> None:
    """Also while it waits itself, and where others take something besides."""
    sorting = ({MAIN: 0.7, POOL: 0.6, own: 0.7}, {MAIN: 0.3, POOL: 0.4, SORTER: 0.3})
    beside = ({MAIN: 0.4, POOL: 0.4, own: 0.5}, {MAIN: 0.6, POOL: 0.6, SORTER: 0.5})
    waits = sampled(USUAL, USUAL, USUAL, sorting, USUAL, beside)
    assert waits[3:] == pytest.approx([0.0 if own > 0 else 0.3, 0.1, 0.7 if own > 0 else 1.2], abs=0.01)


def test_a_process_is_settled_when_its_thread_has_ended() -> None:
    threads = Threads()
    until = time.perf_counter() + 0.1

    def busy() -> None:
        while time.perf_counter() < until:
            pass

    thread = threading.Thread(target=busy)
    thread.start()
    assert threads.settle(30.0)
    assert time.perf_counter() >= until
    thread.join()


@pytest.mark.process
def test_a_child_that_never_stops_does_not_settle() -> None:
    child = subprocess.Popen([sys.executable, "-c", "print(flush=True)\nwhile True: pass"], stdout=subprocess.PIPE)
    with child:
        assert child.stdout is not None
        child.stdout.readline()
        settled = Threads().settle(0.02)
        child.kill()
    assert not settled
    assert Threads().settle(30.0)


def test_a_sample_of_this_process_counts_threads_that_ended_in_it() -> None:
    """And reads no file of theirs that is gone."""
    threads = Threads()
    before = threads.look()
    thread = threading.Thread(target=sum, args=(range(2_000_000),))
    thread.start()
    threads.look()
    thread.join()
    cpu, waited = threads.sampled(before, threads.look(), 1.0)
    assert cpu > 0
    assert waited >= 0
