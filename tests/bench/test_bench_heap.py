"""Workers keep the memory that a step frees, and count the page faults of their steps."""

import json
import os
import subprocess
import sys
from collections import Counter

import pytest

from ipexperf import redaction
from ipexperf.bench.devices.cpu import Cpu
from ipexperf.bench.machine import heap
from ipexperf.bench.process import environment
from ipexperf.conduct import process

pytestmark = pytest.mark.process

needs_glibc = pytest.mark.skipif(not environment.software()["libc"].startswith("glibc"), reason="another C library")

BLOCK = 2**26
"""Larger than any block that glibc as it comes would keep in its heap."""
STEPS = 5
PROGRAM = f"""
import ctypes, json, re
from ipexperf.bench.machine import heap, variables
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]

def step():
    block = libc.malloc({BLOCK})
    ctypes.memset(block, 1, {BLOCK})
    libc.free(block)

def resident():
    return int(re.search(r"VmRSS:\\s+(\\d+)", open("/proc/self/status").read())[1]) * 1024

step()
used = heap.StepUsage()
with used.watch({STEPS}):
    for _ in range({STEPS}):
        step()
held = resident()
heap.trim()
print(json.dumps({{"faults": used.metrics["page_faults"], "note": used.note, "given_back": held - resident()}}))
"""


@needs_glibc
@pytest.mark.parametrize(("variables", "keeps"), [(heap.KEEP, True), (heap.PLAIN, False)])
def test_what_a_step_frees_is_there_for_the_next_one(variables: dict[str, str], *, keeps: bool) -> None:
    """A block of 16,384 pages costs no page fault the second time, and is given back when it is asked for.

    A plain heap takes each page anew, and a note says so.
    """
    shell = {name: value for name, value in os.environ.items() if not heap.CHOICES.match(name)}
    command = [sys.executable, "-c", PROGRAM]
    found = subprocess.run(command, env={**shell, **variables}, capture_output=True, text=True, check=True)
    told = json.loads(found.stdout)
    assert (told["faults"] < 50) is keeps
    assert (told["given_back"] > 0.9 * BLOCK) is keeps
    assert ("page faults per step: the kernel took" in told["note"]) is not keeps


@needs_glibc
def test_forks_of_one_process_have_their_blocks_in_places_of_their_own() -> None:
    """After a shake, which takes about 1 MiB. Without it all have the places that they inherited."""
    program = f"""
import ctypes, os, sys
from ipexperf.bench.machine import heap
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
for forked in range(2 * {STEPS}):
    if not os.fork():
        used = heap.in_use()
        if forked % 2:
            heap.shake()
        print(forked % 2, [libc.malloc(size) for size in (100, 5000, {BLOCK})], heap.in_use() - used - {BLOCK}, sep=";")
        sys.stdout.flush()
        os._exit(0)
    os.wait()
"""
    environment = {**os.environ, **heap.KEEP}
    told = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    lines = [line.split(";") for line in told.stdout.splitlines()]
    places = {shaken: {place for kind, place, _ in lines if kind == shaken} for shaken in "01"}
    assert (len(places["0"]), len(places["1"])) == (1, STEPS)
    assert all(0.5 * 2**20 < int(more) < 2 * 2**20 for kind, _, more in lines if kind == "1")


@pytest.mark.parametrize(
    ("shell", "keeps"),
    [
        ({}, True),
        ({"LD_PRELOAD": "libiomp5.so"}, True),
        ({"MALLOC_ARENA_MAX": "2"}, False),
        ({"MALLOC_CONF": "narenas:1"}, False),
        ({"GLIBC_TUNABLES": ""}, False),
    ],
)
def test_whoever_chooses_for_the_heap_has_the_choice_whole(
    shell: dict[str, str], monkeypatch: pytest.MonkeyPatch, *, keeps: bool
) -> None:
    """Whether the shell says it or the arm of a comparison."""
    for name in [name for name in os.environ if heap.CHOICES.match(name)]:
        monkeypatch.delenv(name)
    given = process.environment_of(None, shell)
    assert (heap.KEEP.items() <= given.items()) is keeps
    assert shell.items() <= given.items()
    assert len(redaction.tuned({**heap.KEEP, **heap.PLAIN})) == len({**heap.KEEP, **heap.PLAIN})


def test_few_faults_or_cheap_ones_are_no_news() -> None:
    """The note is for faults that are many and take the time."""
    few, many = Counter(page_faults=100), Counter(page_faults=100_000)
    assert heap.StepUsage().note == ""
    assert heap.StepUsage(10, few, kernel=5, cpu=10).note == ""
    assert heap.StepUsage(10, many, kernel=0.5, cpu=10).note == ""
    assert heap.StepUsage(10, many, kernel=5, cpu=10).note.startswith("10,000 page faults per step: the")


def grown(*sizes: float, steps: int = 10) -> str:
    """The note of a launch whose turns ended with these MiB."""
    turns = [(steps * (number + 1), int(size * 2**20)) for number, size in enumerate(sizes)]
    return heap.Growth(turns).note


def test_memory_that_grows_with_every_turn_has_a_note() -> None:
    """A cache that takes 1 MiB a step, also if it began to grow late."""
    note = "took more memory after each turn: 50.0 MiB more in its last 50 steps"
    assert grown(*range(100, 200, 10)) == note
    assert grown(100, 100, 100, 100, 100, 110, 120, 130, 140, 150) == note


@pytest.mark.parametrize(
    "sizes",
    [
        [100] * 10,
        [100, 200, 300, 400, 500, 500, 500, 500, 500, 500],  # filled once
        [100, 110, 120, 130, 140, 150, 160, 150, 160, 170],  # taken and given back
        [100 + number / 100 for number in range(10)],  # our own records of each step
        [100, 110, 120],  # too few turns
    ],
)
def test_memory_that_settles_has_none(sizes: list[float]) -> None:
    assert grown(*sizes) == ""


def test_many_short_steps_may_leave_a_little_each() -> None:
    """A training keeps the loss of each of its steps."""
    assert grown(*range(100, 110), steps=1000) == ""


def test_without_a_heap_that_tells_it_nothing_is_said_to_be_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """Older versions of glibc have no such function, and other C libraries have another name."""
    monkeypatch.setattr(heap, "GLIBC", "libc.so.none")
    assert heap.in_use() is None
    assert list(Cpu().memory()) == ["peak_memory"]
