"""Counts of the kernel: what a process, its threads and its children did, and nothing where it does not count."""

from __future__ import annotations

import mmap
import threading

import pytest

from ipexperf.bench.machine import retired
from ipexperf.bench.machine.retired import PAGE_FAULTS, Counter

counts = Counter(PAGE_FAULTS).read() is not None
needs_counters = pytest.mark.skipif(not counts, reason="this kernel lets users count nothing (perf_event_paranoid)")
PAGES = 2000


def touch() -> None:
    """Write to pages that this process has never touched."""
    with mmap.mmap(-1, PAGES * mmap.PAGESIZE) as memory:
        memory.madvise(mmap.MADV_NOHUGEPAGE)
        for page in range(PAGES):
            memory[page * mmap.PAGESIZE] = 1


@needs_counters
def test_an_event_is_counted_in_this_thread_and_in_those_it_starts() -> None:
    counter = Counter(PAGE_FAULTS)
    before = counter.read()
    touch()
    alone = counter.read()
    thread = threading.Thread(target=touch)
    thread.start()
    thread.join()
    both = counter.read()
    assert before is not None
    assert alone is not None
    assert both is not None
    assert PAGES <= alone - before < 1.2 * PAGES
    assert PAGES <= both - alone < 1.2 * PAGES
    counter.close()
    assert counter.read() is None


def test_an_event_that_nobody_can_count_has_no_count() -> None:
    """No number, and not 0: a metric of 0 instructions would be a finding."""
    counter = Counter((2**31, 0))
    assert counter.read() is None
    counter.close()


def test_instructions_since_a_moment_need_both_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    readings: list[int | None] = [100, 130, None, 130, 150]
    monkeypatch.setattr(retired, "count", lambda: readings.pop(0))
    assert retired.since(retired.count()) == 30
    assert retired.since(retired.count()) is None
    assert retired.since(None) is None
