"""What users and stored data rely on: a change of these files is a change for users, and needs a line in the changelog.

Golden files: delete one and run with IPEXPERF_GOLDEN=1 to write it anew, then review it. `history.sql` was recorded
once, from a run of fake cases, and is never written anew.
"""

import contextlib
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import cli_answers
import pytest

from ipexperf import cli
from ipexperf.case import NetworkCase
from ipexperf.history import History
from ipexperf.result import METRICS

ROOT = Path(__file__).parents[1]
GOLDEN = Path(__file__).parent / "golden"
CASES = [
    NetworkCase("resnet50", "cpu", "bf16", "infer_jit", "ipex", 32, 32),
    NetworkCase("resnet50", "xpu", "fp16", "train", "stock", 64, 32),
    NetworkCase("resnet18", "cpu", "fp32", "train", "ipex", 64, 32, knobs=(("accumulate", "2"), ("optimizer", "lamb"))),
    NetworkCase("bert_base", "cpu", "int8", "infer_jit", "ipex", 8, 32, data="sentences"),
    NetworkCase("dlrm", "cuda", "fp32", "infer_compile", "stock", 512, 32, data="movielens"),
]


def test_percent_are_written_one_way() -> None:
    """By `units`, with a space before the sign."""
    sources = {path.name: path.read_text() for path in (ROOT / "ipexperf").rglob("*.py")}
    assert [name for name, text in sources.items() if re.search(r":[<>]?\d*\.\d%\}", text)] == []


def compare(name: str, text: str) -> None:
    """Compare a text with a golden file."""
    path = GOLDEN / name
    if os.environ.get("IPEXPERF_GOLDEN") and not path.exists():
        path.write_text(text)
    assert text == path.read_text()


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """The history that was recorded once."""
    path = tmp_path / "history.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript((GOLDEN / "history.sql").read_text())
    return path


@pytest.mark.parametrize("command", ["show", "runs", "speedup", "trend"])
def test_a_recorded_history_reads_the_same(recorded: Path, capsys: pytest.CaptureFixture[str], command: str) -> None:
    """Every field of the JSON, its name and its value."""
    words = {"show": ("show", "last"), "runs": ("show",), "speedup": ("compare", "--ratios")}.get(command, (command,))
    compare(f"{command}.json", cli_answers.run(capsys, *words, "--json", "--db", str(recorded)))


def test_a_recorded_run_is_accepted_into_the_same_file(
    recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Baseline files are reviewed and kept for years."""
    folder = tmp_path / "baselines"
    given = ["--db", str(recorded), "--baselines", str(folder), "--reason", "the first", "--by", "somebody"]
    sound = ["--case", "tiny-fake-fp32-spin-plain", "--case", "tiny-fake-bf16-spin-plain"]
    cli_answers.run(capsys, "baseline", "accept", "last", *given, *sound, "--cache", str(tmp_path))
    [path] = folder.rglob("*.json")
    compare("baseline.json", re.sub(r'"\d{4}-\d\d-\d\dT[^"]*"', '"WHEN"', path.read_text()))


def test_the_schema_is_the_same(tmp_path: Path) -> None:
    """A fresh history has these tables."""
    path = tmp_path / "fresh.db"
    with History.open(path):
        pass
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY type, name").fetchall()
    compare("schema.sql", "\n".join(row[0] for row in rows) + "\n")


def options(text: str) -> Iterator[str]:
    """The long options of a help text, where they are declared."""
    return (match[1] for match in re.finditer(r"^\s+(?:-\w, )?(--[a-z-]+)", text, re.MULTILINE))


@pytest.mark.process
def test_options_are_the_same(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Of pytest in this checkout, and of each command."""
    monkeypatch.setenv("COLUMNS", "100")

    def told(*command: str) -> str:
        with contextlib.suppress(SystemExit):  # a gate has statuses of its own
            cli.main([*command, "--help"])
        return capsys.readouterr().out

    pytest_help = [sys.executable, "-m", "pytest", "suites/", "--help"]
    ours = subprocess.run(pytest_help, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    short = {"--device", "--dtype", "--mode", "--model", "--stack"}
    lines = [f"pytest {name}" for name in sorted(set(options(ours))) if name in short or name.startswith("--perf-")]
    whole = told()
    for command in sorted(re.findall(r"^    ([a-z]+)\b", whole, re.MULTILINE)):
        found = options(told(command))
        lines.append(" ".join([f"ipexperf {command}", *sorted(set(found) - {"--help"})]))
    compare("options.txt", "\n".join(lines) + "\n")


def test_cases_and_metrics_have_the_same_names() -> None:
    """A case's uid is the key of its history: other uids would begin all series anew."""
    lines = [f"{case.uid}  {case.id}" for case in CASES]
    compare("names.txt", "\n".join([*lines, *sorted(METRICS)]) + "\n")
