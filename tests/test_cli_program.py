"""`ipexperf ab --program`: a program runs as a whole in both arms, and each number that it tells is compared."""

import json
import re
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from cli_answers import on_terminal

from ipexperf import cli
from ipexperf.bench.machine import kernel_files

pytestmark = pytest.mark.process

SLOW = 'float(os.environ.get("SLOW", "1"))'
TELLS = f"""\
import json, os, random, sys
slow, seed = {SLOW}, random.Random(os.getpid())
numbers = {{f"kernel/{{n}}": 2 ** n * seed.gauss(1, 0.002) * (slow if n < 2 else 1) for n in range(8)}}
json.dump({{"lower": numbers, "higher": {{"rate": 100 / slow * seed.gauss(1, 0.002)}}}}, open(sys.argv[1], "w"))
"""
NUMBERS = ("--metrics", "lower:json:lower.*", "--metrics", "higher:json:higher.*")
RUN = ("--", sys.executable, "tells.py", "{out}")
CLIENT = ("--", "true", "{port}")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run the test in a folder of its own with a program that tells numbers."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tells.py").write_text(TELLS)
    return tmp_path


def ab(*words: str, program: tuple[str, ...] = RUN, metrics: tuple[str, ...] = NUMBERS) -> int:
    return cli.main(["ab", "--program", *words, *metrics, *program])


def asked(question: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect("ipexperf.db")) as connection:
        return connection.execute(question).fetchall()


def test_the_numbers_that_are_worse_are_found_and_recorded(capsys: pytest.CaptureFixture[str]) -> None:
    """Those of which more is better too. Times as a whole say nothing here."""
    assert ab("--b", "SLOW=1.2", "--fail", "--max-pairs", "8") == 1
    shown = capsys.readouterr().out
    assert "3 worse" in shown
    assert shown.index("worse:") < shown.index("kernel/0") < shown.index("ran  ")
    assert re.search(r"    [\d.]+ % worse: (?:100|99\.\d) -> 8\d", shown)
    assert "differs  SLOW" in shown
    outcomes = asked(
        "SELECT json_extract(c.params, '$.number'), v.outcome, s.unit, s.higher_is_better FROM verdict v"
        " JOIN series s ON s.id = v.series_id JOIN 'case' c ON c.id = s.case_id WHERE s.metric = 'step_time'"
    )
    found = {name: rest for name, *rest in outcomes}
    worse = {name for name, (outcome, *_) in found.items() if outcome == "regressed"}
    assert worse == {"lower.kernel/0", "lower.kernel/1", "higher.rate"}
    assert found["higher.rate"][1:] == ["", 1]
    assert found[""][1:] == ["s", 0]
    assert cli.main(["trend", "--limit", "1"]) == 0
    assert "lower.kernel/0" in capsys.readouterr().out
    assert cli.main(["comment", "last"]) == 0
    comment = capsys.readouterr().out
    assert (len(re.findall("^- ", comment, re.MULTILINE)), comment.count("SLOW")) == (3, 1)
    assert cli.main(["report", "last", "--markdown"]) == 0
    assert re.search(r"`higher.rate` \| 8\d\.\d \| -[\d.]+ % .* \| regressed \|", capsys.readouterr().out)


def test_progress_on_a_terminal_is_one_line() -> None:
    lines = on_terminal("ab", "--program", "--max-pairs", "4", "--", "true")
    assert "1 number beside itself" in lines[0]


def test_a_program_runs_in_the_tree_of_its_arm_which_is_built_once(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It imports from there too. A commit is built in a tree of its own, and what is here where it is."""
    (folder / "slowness.py").write_text("FACTOR = 1.0\n")
    (folder / "tells.py").write_text(f"import slowness\n{TELLS.replace(SLOW, 'slowness.FACTOR')}")
    (folder / ".gitignore").write_text("built\n*.db\n.ipexperf\n__pycache__\n")
    git = ("git", "-c", "user.name=x", "-c", "user.email=x@x")
    for words in (("init", "-q"), ("add", "."), ("commit", "-qm", "one")):
        subprocess.run([*git, *words], check=True)
    (folder / "slowness.py").write_text("FACTOR = 1.3\n")
    build = ("--build", "echo built >> built")
    assert ab("--a", "git:HEAD", "--b", ".", "--max-pairs", "8", *build) == 0
    shown = capsys.readouterr().out
    assert "3 worse" in shown
    assert "differs  slowness.py:1 'FACTOR = 1.0' -> 'FACTOR = 1.3'" in shown
    trees = [path for path in (folder, *(folder / ".ipexperf" / "sources").iterdir()) if (path / "built").exists()]
    assert len(trees) == 2
    assert all((tree / "built").read_text() == "built\n" for tree in trees)


def test_who_runs_first_alternates(folder: Path) -> None:
    program = ("--", sys.executable, "-c", "import os; open('order', 'a').write(os.environ.get('ARM', 'a'))")
    assert ab("--b", "ARM=b", "--max-pairs", "4", program=program, metrics=()) == 0
    order = (folder / "order").read_text()
    assert order[:2] == "ab"  # the first run of each does not count
    assert order[2:] in ("abbaabba", "baabbaab")


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("sys.exit('no such kernel')", "arm b: it ended with 1: no such kernel"),
        ("os.kill(os.getpid(), 11)", "arm b: it was ended by SIGSEGV: it printed nothing"),
        ("sys.exit()", "arm b: --metrics lower:json:*: it wrote no {out}"),
        ("time.sleep(60)", "arm b: it took longer than 1.00 s (--perf-timeout), and was killed"),
        ("input('name? ')", "arm b: it ended with 1: EOFError: EOF when reading a line"),
        ("open('/dev/tty')", "arm b: it ended with 1: OSError: [Errno 6] No such device or address: '/dev/tty'"),
        ("told['a'] = float('nan')", "arm b: in run 1 a is nan, not above 0"),
        ("told['a'] = 0", "arm b: in run 1 a is 0, not above 0"),
        ("if os.path.exists('late'): del told['a']\nopen('late', 'w')", "arm b: in run 1 a is not told"),
    ],
)
def test_what_is_wrong_with_an_arm_is_one_sentence(
    folder: Path, body: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The other numbers are compared, where there are any."""
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    (folder / "bad.py").write_text(
        "import json, os, sys, time\ntold = {'a': 1.0, 'b': 2.0}\nif 'BAD' in os.environ:\n"
        f"{lines}\njson.dump(told, open(sys.argv[1], 'w'))\n"
    )
    program = ("--", sys.executable, "bad.py", "{out}")
    metrics = ("--metrics", "lower:json:*")
    assert ab("--b", "BAD=1", "--max-pairs", "2", "--perf-timeout", "1", program=program, metrics=metrics) == 2
    assert capsys.readouterr().err.splitlines()[-1] == f"ipexperf: {sentence}"
    if body.startswith(("told", "if")):
        measured = asked(
            "SELECT n FROM measurement m JOIN series s ON s.id = m.series_id JOIN 'case' c ON c.id = s.case_id"
            " WHERE json_extract(c.params, '$.number') = 'b'"
        )
        assert measured == [(2,)]


def test_numbers_that_one_arm_lacks_are_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "some.py").write_text("import os\nprint(os.environ.get('NAME', 'a'), 1.0)\nprint('both', 1.0)\n")
    program = ("--", sys.executable, "some.py")
    metrics = ("--metrics", r"lower:re:(?P<name>\w+) (\d.*)")
    assert ab("--b", "NAME=b", "--max-pairs", "2", program=program, metrics=metrics) == 0
    assert "NOT COMPARED (2): there is no ratio: arm b: a is not told, arm a: b is not told" in capsys.readouterr().out


def test_bisect_finds_the_commit_that_makes_a_number_worse(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each commit runs in its own tree. Of several numbers one must be chosen."""
    git = ("git", "-c", "user.name=x", "-c", "user.email=x@x")
    (folder / ".gitignore").write_text("*.db\n.ipexperf\n__pycache__\n")
    (folder / "tells.py").write_text(f"import slowness\n{TELLS.replace(SLOW, 'slowness.FACTOR')}")
    subprocess.run([*git, "init", "-q"], check=True)
    for number, factor in enumerate((1.0, 1.0, 1.3, 1.3)):
        (folder / "slowness.py").write_text(f"FACTOR = {factor}  # {number}\n")
        subprocess.run([*git, "add", "."], check=True)
        subprocess.run([*git, "commit", "-qm", f"change {number}"], check=True)
    words = ("bisect", "--commits", "HEAD~3..HEAD", "--max-pairs", "6", "--program")
    assert cli.main([*words, *NUMBERS, *RUN]) == cli.USAGE_ERROR
    assert "--metrics: bisect measures one number, and there are 9 (" in capsys.readouterr().err
    assert cli.main([*words, *NUMBERS[2:], *RUN]) == 0
    assert re.match(r"CULPRIT: commit \w+: change 2 ", capsys.readouterr().out)


def pids(file: Path) -> list[int]:
    return [int(word) for word in file.read_text().split()] if file.exists() else []


def over(pid: int) -> bool:
    try:
        return kernel_files.stat_fields(pid)[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


LEAVES = "sh -c 'sleep 500 & echo $! >> pids'; setsid sleep 500 & echo $! >> pids"


def test_no_process_that_a_program_leaves_goes_on(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Not even one that began a session of its own."""
    assert ab("--max-pairs", "1", program=("--", "sh", "-c", LEAVES), metrics=()) == 0
    assert "arm a: the program left 2 processes, and each run ends them" in capsys.readouterr().err
    assert len(pids(folder / "pids")) == 8
    assert all(map(over, pids(folder / "pids")))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_comparison_leaves_no_process(folder: Path, number: signal.Signals) -> None:
    """Neither of the program nor of a server."""
    (folder / "leaves.sh").write_text(f"{LEAVES}; sleep 500")
    server = ("--server", "sh leaves.sh {port}", "--ready", "true {port}")
    words = ("ab", "--program", *server, "--", "sh", "leaves.sh", "{port}")
    running = subprocess.Popen(
        [sys.executable, "-m", "ipexperf.cli", *words], cwd=folder, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    )
    while len(pids(folder / "pids")) < 4:
        assert running.poll() is None
        time.sleep(0.01)
    running.send_signal(number)
    assert running.wait() != 0
    while not all(map(over, pids(folder / "pids"))):
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--program"], "--program: say what to run behind --"),
        (["--metrics", "hyperfine", "--", "x"], "--metrics: only a program has that: say --program too"),
        (["--program", "--", "bench", "{out}"], "--program: it writes to {out}: say by --metrics in which format"),
        (["--program", "--b", "dtype=bf16", "--", "true"], "arm b: a program has no dtype"),
        (["--server", "x {port}", "--", "x"], "--server: only a program has that: say --program too"),
        (["--program", "--server", "x", *CLIENT], "--server: each arm's server has a port of its own"),
        (["--program", "--server", "x {port}", "--", "x"], "--program: each arm's server has a port of its own"),
        (["--program", "--server", "x {port}", "--ready", "x", *CLIENT], "--ready: each arm's server has a port"),
        (["--program", "--ready", "x {port}", *CLIENT], "--server: each arm's server has a port of its own"),
        (["--program", "--server", "'x {port}", *CLIENT], "--server ''x {port}': No closing quotation"),
        (["--program", "--server", "no-such {port}", *CLIENT], "arm a: 'no-such' cannot be started"),
        (["--program", "--server", "sleep 9{port}", "--ready", "no {port}", *CLIENT], "arm a: 'no' cannot be started"),
        (["--program", "--", "no-such-program"], "arm a: 'no-such-program' cannot be started: No such file or dir"),
    ],
)
def test_a_wrong_command_line_is_refused_in_one_sentence(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["ab", *words]) == cli.USAGE_ERROR
    assert capsys.readouterr().err.splitlines()[-1].startswith(f"ipexperf: {sentence}")


def test_json_has_each_number(capsys: pytest.CaptureFixture[str]) -> None:
    assert ab("--json", "--max-pairs", "2") == 0
    names = [comparison["b"] for comparison in json.loads(capsys.readouterr().out)]
    assert len(names) == 10
    assert names[0] == f"{sys.executable} tells.py {{out}}"
    assert names[1] == f"{names[0]}: lower.kernel/0"


def test_the_whole_program_is_told_by_its_time_and_memory(folder: Path) -> None:
    """Those of what it starts, too."""
    (folder / "child.py").write_text("x = bytearray(200 * 2**20)\nsum(range(10**6))\n")
    assert ab("--max-pairs", "2", program=("--", "sh", "-c", f"{sys.executable} child.py; true"), metrics=()) == 0
    values = dict(asked("SELECT metric, median FROM measurement m JOIN series s ON s.id = m.series_id"))
    assert values["peak_memory"] > 200 * 2**20
    assert values["cpu_time"] > 0
    assert values["step_time"] > 0
