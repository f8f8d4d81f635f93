"""A network's file can replace the clocks of Python, and changes no time that is measured."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import ipexperf.bench
from ipexperf.bench import clocks

ROOT = Path(ipexperf.bench.__file__).parent
WORKER = """
import time
from types import SimpleNamespace
import ipexperf.bench.process.worker

sleep = time.sleep
for name in ("perf_counter", "process_time", "sleep"):
    setattr(time, name, lambda *_: 0.0)  # as the file of a network can, which the worker loads now

from ipexperf.bench import api
from ipexperf.bench.modes import _engine, _rank, load, serve
from ipexperf.bench.modes._requests import Request

def wait(*_):
    sleep(0.01)

def spent(*_):
    begin = cpu()
    while cpu() - begin < 0.01:
        pass

def session(kind, **known):
    one = kind.__new__(kind)
    vars(one).update(known)
    return one

cpu = ipexperf.bench.measure.process_time
device = SimpleNamespace(synchronise=lambda: None)

loading = session(load.LoadSession, bench=SimpleNamespace(device=device), phases={}, imported=0)
loading._timed("build_time", wait)
print("load", loading.phases["build_time"] >= 0.01)

with loading.compiling(device.synchronise):
    wait()
print("compile_time", loading.compile_time >= 0.01)

rows = SimpleNamespace(read=wait, decode=spent, move=wait)
bench = SimpleNamespace(case=SimpleNamespace(batch=1))
serving = session(serve.ServeSession, bench=bench, requests=[Request(0, 0.0, 1, 2)], rows=rows, resting=[], replays=[])
reply = serving.replay()
print("serve", reply["seconds"] >= 0.02, reply["first_token"][0] >= 0.01, reply["samples"][0][1] > 0)

_rank.torch = SimpleNamespace(distributed=SimpleNamespace(barrier=lambda: None))
ledger = SimpleNamespace(read=lambda: None, enter=lambda *_: None)
rank = session(_rank.RankSession, ledger=ledger, step=spent)
[(begin, end, own, _)] = rank.spans(device.synchronise, 1, 1)
print("train_ddp", end - begin >= 0.01, own >= 0.01)
"""


@pytest.mark.process
def test_a_network_that_replaces_the_clocks_changes_no_time_of_any_mode() -> None:
    """The modes are imported after its file, and take the clocks that the worker had before."""
    done = subprocess.run([sys.executable, "-c", WORKER], capture_output=True, text=True, check=False)
    assert done.stdout.split("\n") == [
        "load True",
        "compile_time True",
        "serve True True True",
        "train_ddp True True",
        "",
    ], done.stderr


def test_what_measures_takes_the_clocks_that_nobody_can_replace() -> None:
    """No file of the worker's side reads a clock from the module `time`."""
    names = set(clocks.__all__)
    wrong = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in ROOT.rglob("*.py")
        if path.name != "clocks.py"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if (isinstance(node, ast.Attribute) and node.attr in names and ast.unparse(node.value) == "time")
        or (isinstance(node, ast.ImportFrom) and node.module == "time" and names & {one.name for one in node.names})
    ]
    assert wrong == []
