"""Ctrl-C while a command imports what it needs: one line and status 130, at any moment."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PLANTED = """
import os, signal, sys
moment, seen = os.environ["INTERRUPT_AT"], []

def heard(event, arguments):
    if event == "import" and (seen or arguments[0] == "ipexperf.commands"):
        seen.append(arguments[0])
        if moment in (str(len(seen)), arguments[0]):
            os.environ["INTERRUPT_AT"] = ""
            signal.raise_signal(signal.SIGINT)

sys.addaudithook(heard)
"""
MODULES = ("sqlalchemy", "pandas", "rich.console")
pytestmark = pytest.mark.process


def interrupted(folder: Path, moment: str, *words: str) -> tuple[int, str]:
    (folder / "sitecustomize.py").write_text(PLANTED)
    variables = {**os.environ, "PYTHONPATH": f"{folder}:{Path(__file__).parents[1]}", "INTERRUPT_AT": moment}
    done = subprocess.run(
        [sys.executable, "-m", "ipexperf.cli", *words],
        capture_output=True, text=True, check=False, env=variables, cwd=folder, timeout=60,
    )  # fmt: skip
    return done.returncode, done.stderr


@pytest.mark.parametrize("moment", ["1", "17", "81", "161"])
def test_an_interrupt_while_a_command_starts_is_one_line(tmp_path: Path, moment: str) -> None:
    """At its first import, or at one of those after it."""
    assert interrupted(tmp_path, moment, "trend", "--help") == (130, "ipexperf: interrupted\n")


@pytest.mark.parametrize("module", MODULES)
def test_an_interrupt_while_a_command_loads_what_reads_a_history_is_one_line(tmp_path: Path, module: str) -> None:
    from ipexperf.history import History

    with History.open(tmp_path / "ipexperf.db") as history:
        history.start_run({"machine_key": "here"}, {})
    assert interrupted(tmp_path, module, "trend") == (130, "ipexperf: interrupted\n")
