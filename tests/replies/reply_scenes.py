"""Runs whose workers' replies are kept on tapes: which there are, how each is run, and what it records.

`python tests/replies/reply_scenes.py [NAME ...]` makes tapes and their records anew, with real workers.
"""

import json
import lzma
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tape import filled, named

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
EXAMPLES = ROOT / "docs" / "how-to" / "examples"
TAPE = HERE / "tape.py"
LIBRARIES = "libraries"
"""The file of a tape, while it is recorded or played, that says where the controller found libraries."""
QUICK = (
    "--perf-preset=full",
    "--perf-start=fresh",
    "--perf-lease=off",
    "--perf-without=roof",
)
CONFTEST = f"""
{(ROOT / "tests" / "fakes" / "any_machine.py").read_text()}
import functools
import json
import os
import random
from pathlib import Path

from ipexperf.bench.machine import libraries
from ipexperf.compare import rounds, together
from ipexperf.conduct import watch


class Chance(random.Random):
    def __init__(self, seed=0):
        super().__init__(seed)


# Nothing depends on chance or on the time that passes here.
random.Random = Chance
rounds.Effort = functools.partial(rounds.Effort, turns=3, most=3, seconds=0.02)
together.PATIENCE = watch.STRETCH_SECONDS = float("inf")

FOUND, find = Path(os.environ["TAPE"], "{LIBRARIES}"), libraries.find


def on_tape(name, *where):
    "What the controller looks for in the file system is on the tape too."
    found = json.loads(FOUND.read_text())
    if os.environ["TAPE_PYTHON"]:
        FOUND.write_text(json.dumps({{**found, name: find(name, *where)}}))
        return find(name, *where)
    return found[name]


libraries.find = on_tape
"""
BUSY = """
from ipexperf.conduct import gate

SAID = ["another program used 40 % of the cores"]
gate.contended = lambda *_: SAID.pop() if SAID else ""
"""
SUITE = """
import pytest


@pytest.mark.perf
def test_it(perf):
    perf()
"""


@dataclass(frozen=True, slots=True)
class Scene:
    """A run: its options beside those of all, and what its conftest does besides."""

    options: tuple[str, ...]
    conftest: str = ""
    length: tuple[str, ...] = ("--perf-launches=2", "--perf-samples=4", "--perf-seconds=0.05")


SMALL = "--perf-model=mynets.py:small"
LEARNS = "--perf-model=learns.py:small"
NETWORKS = f"--perf-load={HERE / 'networks.py'}"
SCENES = {
    "inference": Scene((SMALL, "--perf-mode=infer,infer_jit", "--perf-dtype=fp32,bf16")),
    "compiled": Scene((SMALL, "--perf-mode=infer_compile,infer_export", "--perf-dtype=fp32")),
    "int8": Scene((SMALL, "--perf-mode=infer_jit,realtime", "--perf-dtype=fp32,int8")),
    "starts": Scene((SMALL, "--perf-mode=load,realtime,multistream", "--perf-dtype=bf16")),
    "training": Scene((LEARNS, "--perf-mode=train,train_compile,train_ddp", "--perf-dtype=bf16")),
    "decoder": Scene((NETWORKS, "--perf-model=tiny_decoder", "--perf-mode=prefill,decode", "--perf-dtype=fp32")),
    "failures": Scene(
        (NETWORKS, "--perf-model=provokes_crashed,provokes_out_of_memory", "--perf-mode=infer", "--perf-dtype=fp32")
    ),
    "contention": Scene((SMALL, "--perf-mode=infer", "--perf-dtype=fp32"), BUSY),
    "pairs": Scene(
        (SMALL, "--perf-mode=infer", "--perf-dtype=fp32", "--perf-against=OMP_NUM_THREADS=1"),
        length=("--perf-max-pairs=4",),
    ),
}


def tape_of(name: str) -> Path:
    return HERE / f"{name}.json.xz"


def places(folder: Path) -> dict[str, str]:
    """The folders of this machine that a tape has by name alone. `folder` is the user's."""
    system = {"temporary": tempfile.gettempdir(), "home": str(Path.home())}
    return {"folder": str(folder), "tree": str(ROOT), "venv": sys.prefix, **system}


def run(name: str, folder: Path, python: str = "") -> subprocess.CompletedProcess[str]:
    """Run a scene in an empty folder: with real workers of this interpreter, or with those of its tape."""
    scene = SCENES[name]
    for example in ("mynets.py", "learns.py"):
        shutil.copy(EXAMPLES / example, folder)
    (folder / "conftest.py").write_text(CONFTEST + scene.conftest)
    (folder / "test_suite.py").write_text(SUITE)
    (folder / "tape" / "here").mkdir(parents=True)
    kept = {"processes": [], LIBRARIES: {}} if python else json.loads(lzma.decompress(tape_of(name).read_bytes()))
    for number, process in enumerate(kept["processes"]):
        (folder / "tape" / f"{number:03}.json").write_text(json.dumps(process))
    (folder / "tape" / LIBRARIES).write_text(filled(json.dumps(kept[LIBRARIES]), places(folder)))
    script = folder / "python"
    script.write_text(f"#!{sys.executable}\n{TAPE.read_text()}")
    script.chmod(0o755)
    variables = {"TAPE": str(folder / "tape"), "TAPE_PLACES": json.dumps(places(folder)), "TAPE_PYTHON": python}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "test_suite.py"]
    words = [*command, *QUICK, "--perf-device=cpu", *scene.length, *scene.options, "--perf-python=./python"]
    return subprocess.run(
        words, cwd=folder, env={**os.environ, **variables}, capture_output=True, text=True, check=False, timeout=1800
    )


def records(folder: Path) -> dict[str, Any]:
    """What the run in this folder has recorded, without its moments and names."""
    with closing(sqlite3.connect(folder / "ipexperf.db")) as connection:
        ask = connection.execute
        names = dict(
            ask('SELECT id, model || "-" || dtype || "-" || mode || "-" || stack || "-" || params FROM "case"')
        )
        launches = [
            {"case": names[case], "launch": launch, "outcome": outcome, "reason": reason, **_settled(json.loads(doc))}
            for case, launch, outcome, reason, doc in ask("SELECT case_id, launch, outcome, reason, doc FROM launch")
        ]
        rounds = [list(row) for row in ask("SELECT name, number, schedule, turns, dropped FROM round")]
        ratios = [
            [number, base_role, names[base], role, names[case], ratio, turns]
            for number, base_role, base, role, case, ratio, turns in ask(
                "SELECT r.number, base_role, base_id, role, case_id, log_ratio, p.turns FROM paired p "
                "JOIN round r ON r.id = p.round_id ORDER BY r.number, base_place, place"
            )
        ]
        values = [
            [names[case], metric, *figures]
            for case, metric, *figures in ask(
                "SELECT s.case_id, s.metric, n, median, mean, mad, lo, hi, outcome, reason FROM measurement m "
                "JOIN series s ON s.id = m.series_id"
            )
        ]
        verdicts = [
            [names[case], metric, outcome, ratio, mde, _settled(json.loads(reason))]
            for case, metric, outcome, ratio, mde, reason in ask(
                "SELECT s.case_id, s.metric, outcome, ratio, mde, reason FROM verdict v "
                "JOIN series s ON s.id = v.series_id"
            )
        ]
    found = {
        "launches": sorted(launches, key=lambda one: (one["case"], one["launch"])),
        "rounds": sorted(rounds),
        "ratios": ratios,
        "values": sorted(values, key=lambda row: row[:2]),
        "verdicts": sorted(verdicts, key=lambda row: row[:2]),
    }
    settled: dict[str, Any] = json.loads(named(json.dumps(found), places(folder)))
    return settled


def _settled(document: dict[str, Any]) -> dict[str, Any]:
    """Without its moments, and without what the controller itself saw of the machine."""
    kept = {name: value for name, value in document.items() if name not in ("started_at", "finished_at", "log")}
    if "gate" in kept:
        kept["gate"] = {name: value for name, value in kept["gate"].items() if name.startswith(("turn", "arms"))}
    return kept


def main() -> int:
    for name in sys.argv[1:] or SCENES:
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            done = run(name, folder, sys.executable)
            sys.stdout.write(f"== {name}: {done.returncode}\n{done.stdout[-3000:]}{done.stderr}\n")
            processes = [json.loads(path.read_text()) for path in sorted((folder / "tape").glob("*.json"))]
            libraries = json.loads(named((folder / "tape" / LIBRARIES).read_text(), places(folder)))
            document = {
                "processes": processes,
                LIBRARIES: libraries,
                "code": done.returncode,
                "records": records(folder),
            }
            text = json.dumps(document, indent=1).encode()
            tape_of(name).write_bytes(lzma.compress(text))
            sys.stdout.write(f"{len(processes)} processes, {tape_of(name).stat().st_size} bytes\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
