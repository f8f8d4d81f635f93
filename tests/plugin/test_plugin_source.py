"""The files of a user's own: edited since the baseline was accepted, they are judged beside the accepted ones."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from forked_pytest import Servers
from plugin_suite import CELL, CONFTEST, INI, PLUGIN, ROOT, SUITE

pytestmark = [pytest.mark.long, pytest.mark.process]

MODEL = """
import pathlib

from ipexperf.bench import registry
from pace import PACE

TIMES = int((pathlib.Path(__file__).parent / "times.txt").read_text())


@registry.model("mine", size=1, batch_train=1, batch_infer=1, data="none", needs=(), trained=False)
def mine():
    def step():
        for _ in range(PACE * TIMES):
            total = sum(number * number for number in range(2_000))
        return total

    return step
"""
BUILT = """
#include <Python.h>
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "pace"};
PyMODINIT_FUNC PyInit_pace(void) {
    PyObject *made = PyModule_Create(&module);
    PyModule_AddIntConstant(made, "PACE", PACE_OF_THE_BUILD);
    return made;
}
"""
INNER = "int inner(void) { return PACE_OF_THE_BUILD; }"
OUTER = "int inner(void);\nint pace(void) { return inner(); }"
LOADED = """
import ctypes, pathlib
class Pace:
    def __mul__(self, times):
        return ctypes.CDLL(str(pathlib.Path(__file__).parent / "libouter.so")).pace() * times
PACE = Pace()
"""
COMPILER = shutil.which("gcc")
HEADERS = Path(sysconfig.get_path("include"))
LENGTH = ("--perf-launches", "2", "--perf-samples", "3", "--perf-seconds", "0.02")


class Project:
    """A project of a user's own: a model of two files and a data file, in a folder that may be a repository.

    One file is found by pytest's `pythonpath` alone.
    """

    def __init__(self, folder: Path, fake: str, servers: Servers) -> None:
        self.folder, self.fake, self.servers = folder, fake, servers
        (folder / "lib").mkdir(parents=True)
        (folder / "pytest.ini").write_text(f"{INI}pythonpath = lib\n")
        (folder / "conftest.py").write_text(CONFTEST)
        (folder / "test_suite.py").write_text(SUITE)
        (folder / "models.py").write_text(MODEL)
        (folder / "times.txt").write_text("1\n")
        self.pace("PACE = 1\n")

    def pace(self, text: str) -> None:
        (self.folder / "lib" / "pace.py").write_text(text)

    def build(self, pace: int) -> None:
        """Build the module from C, in place of the one in Python."""
        (self.folder / "lib" / "pace.py").unlink(missing_ok=True)
        (self.folder / "lib" / "pace.c").write_text(BUILT)
        out, define = self.folder / "lib" / "pace.so", f"-DPACE_OF_THE_BUILD={pace}"
        words = (str(COMPILER), "-shared", "-fPIC", f"-I{HEADERS}", define, "-o", str(out), "lib/pace.c")
        assert self.run(*words).returncode == 0

    def build_libraries(self, pace: int) -> None:
        """Build what the module in Python loads, and a library that this one needs, by the name of a link to it."""
        self.pace(LOADED)
        for name, text in (("inner", INNER), ("outer", OUTER)):
            (self.folder / "lib" / f"{name}.c").write_text(text)
        gcc = (str(COMPILER), "-shared", "-fPIC", f"-DPACE_OF_THE_BUILD={pace}", "-o")
        inner, link = self.folder / "lib" / "libinner.so.1.2", self.folder / "lib" / "libinner.so.1"
        assert self.run(*gcc, str(inner), "-Wl,-soname,libinner.so.1", "lib/inner.c").returncode == 0
        if not link.exists():
            link.symlink_to(inner.name)
        needs = ("lib/outer.c", str(inner), "-Wl,-rpath,$ORIGIN")
        assert self.run(*gcc, str(self.folder / "lib" / "libouter.so"), *needs).returncode == 0

    def run(self, *command: str, path: str = str(ROOT)) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PYTHONPATH": path}
        return subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=120, check=False
        )

    def git(self, *words: str) -> str:
        user = ("-c", "user.name=me", "-c", "user.email=me@example.com", "-c", "commit.gpgsign=false")
        done = self.run("git", *user, *words)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def commit(self) -> str:
        if not (self.folder / ".git").exists():
            self.git("init", "--quiet", "--initial-branch=first")
        self.git("add", "models.py", "lib", "times.txt", ":!*.so*")
        self.git("commit", "--quiet", "--message", "as it is")
        return self.git("rev-parse", "HEAD")

    def started(self, program: str, *words: str) -> subprocess.CompletedProcess[str]:
        """Run pytest or `ipexperf` with only what is installed."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PYTHONPATH", str(ROOT))
            ended = self.servers.run(program, words, self.folder, 300)
        return subprocess.CompletedProcess(words, ended.ret, ended.stdout.str(), ended.stderr.str())

    def test(self, *more: str) -> subprocess.CompletedProcess[str]:
        length = () if any(word.startswith("--perf-against") for word in more) else LENGTH
        words = (f"--perf-load={self.fake},models.py", "--model", "mine", *CELL, "--perf-max-pairs", "6", *length)
        return self.started("pytest", *PLUGIN, *words, *more)

    def accept(self) -> str:
        measured = self.test()
        assert measured.returncode == 0, measured.stdout
        done = self.started("ipexperf", "baseline", "accept", "last", "--reason", "right")
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def kept(self) -> dict[str, dict[str, object]]:
        [path] = (self.folder / "baselines" / "sources").iterdir()
        return json.loads(path.read_text())["files"]


@pytest.fixture
def project(tmp_path: Path, fake: str, run_servers: Servers) -> Project:
    return Project(tmp_path / "project", fake, run_servers)


def test_an_edited_file_is_judged_beside_the_accepted_one(project: Project) -> None:
    """The edited module is imported by another one, which is not edited, and which reads a file beside it."""
    assert "copies of" in project.accept()
    project.pace("# slower\nPACE = 3\n")
    result = project.test()
    assert result.returncode == 1, result.stdout
    assert "lib/pace.py:1 'PACE = 1' -> '# slower', and 1 more line" in result.stdout
    assert "1 case; lib/pace.py: changed" in result.stdout
    assert "reproduce" in result.stdout
    assert "--perf-against=baseline\n" in result.stdout


@pytest.mark.skipif(not COMPILER or not (HEADERS / "Python.h").exists(), reason="needs gcc and Python's headers")
def test_a_library_that_was_built_in_place_is_judged_beside_the_accepted_one(project: Project) -> None:
    """Git has its source alone. The library itself ran, so it is what is kept."""
    project.build(1)
    project.commit()
    assert "copies of" in project.accept()
    assert "base64" in project.kept()["lib/pace.so"]
    project.build(3)
    result = project.test()
    assert result.returncode == 1, result.stdout
    assert "1 case; lib/pace.so: changed" in result.stdout


@pytest.mark.skipif(not COMPILER, reason="needs gcc")
def test_a_library_that_another_one_loads_is_judged_beside_the_accepted_one(project: Project) -> None:
    """The first step loads it. The user's code names neither it nor where it is, and git has only its source."""
    project.build_libraries(1)
    project.commit()
    project.accept()
    assert {"lib/libinner.so.1.2", "lib/libouter.so"} <= {*project.kept()}
    project.build_libraries(3)
    result = project.test()
    assert result.returncode == 1, result.stdout
    assert "1 case; lib/libinner.so.1.2: changed" in result.stdout


def test_exactly_is_said_where_nothing_that_git_tracks_changed_but_pages(project: Project) -> None:
    """What was edited before it was accepted is compared with that, not with its commit."""
    for name in ("kernel.c", "words.c", "README.md"):
        (project.folder / "lib" / name).write_text("one")
    project.commit()
    (project.folder / "lib" / "kernel.c").write_text("two")
    project.accept()
    (project.folder / "lib" / "README.md").write_text("two")
    assert "its software and source are exactly its baseline's" in project.test().stdout
    project.git("commit", "--quiet", "--all", "--message", "two")
    assert "its software and source are exactly its baseline's" in project.test().stdout
    (project.folder / "lib" / "words.c").write_text("two")
    said = " ".join(project.test().stdout.split())
    assert "as far as was seen; these changed files were not seen to be read, or are data: lib/words.c" in said
    assert "kernel.c" not in said


def test_what_was_not_edited_is_judged_by_its_numbers_and_an_edit_that_costs_nothing_passes(project: Project) -> None:
    project.accept()
    assert "its software and source are its baseline's as far as was seen" in project.test().stdout
    project.pace("ONE = 1\nPACE = ONE\n")
    result = project.test()
    assert result.returncode == 0, result.stdout
    assert "lib/pace.py: changed" in result.stdout


def test_a_committed_file_is_had_again_from_its_commit_even_if_nothing_else_keeps_the_commit(project: Project) -> None:
    commit = project.commit()
    assert f"commit {commit[:12]}" in project.accept()
    assert "lines" not in project.kept()["lib/pace.py"]
    project.git("checkout", "--quiet", "--orphan", "other")
    project.pace("PACE = 3\n")
    project.commit()
    project.git("branch", "--quiet", "-D", "first")
    project.git("reflog", "expire", "--expire=now", "--all")
    project.git("gc", "--quiet", "--prune=now")
    result = project.test()
    assert result.returncode == 1, result.stdout
    assert "lib/pace.py:1 'PACE = 1' -> 'PACE = 3'" in result.stdout


def test_a_file_that_was_edited_before_it_was_accepted_cannot_be_had_again_and_that_is_said(project: Project) -> None:
    project.test()
    project.pace("PACE = 3\n")
    done = project.started("ipexperf", "baseline", "accept", "last", "--reason", "right")
    assert "cannot be had again: lib/pace.py was edited since it ran, and no commit has it" in done.stdout
    result = project.test()
    assert "(lib/pace.py changed since) cannot be made again" in result.stdout.replace("\n    ", " ")


def test_accepted_files_that_no_longer_run_leave_the_case_to_its_numbers(project: Project) -> None:
    """They read a data file, which is too large to be kept and is gone."""
    (project.folder / "times.txt").write_text("1" + " " * 2**24)
    project.accept()
    models = project.folder / "models.py"
    models.write_text(models.read_text().replace('int((pathlib.Path(__file__).parent / "times.txt").read_text())', "1"))
    (project.folder / "times.txt").unlink()
    result = project.test()
    assert result.returncode == 0, result.stdout
    said = result.stdout.replace("\n    ", " ")
    assert "with its source (models.py changed since) cannot be made again" in said
    assert "times.txt" in said


def test_cases_of_one_group_may_have_been_accepted_with_different_files(project: Project) -> None:
    """Each takes turns with its own: one was accepted before the file became slower, and one after."""
    project.accept()
    project.pace("PACE = 3\n")
    project.test("--dtype", "bf16")
    accepted = project.started(
        "ipexperf", "baseline", "accept", "last", "--reason", "right", "--case", "mine-fake-bf16-spin-plain"
    )
    assert accepted.returncode == 0, accepted.stdout + accepted.stderr
    project.pace("# three\nPACE = 3\n")
    result = project.test("--dtype", "bf16")
    assert result.stdout.count("1 case; lib/pace.py: changed") == 2
    assert "REGRESSED (1)" in result.stdout
    assert "  case        mine-fake-fp32-spin-plain (batch 1)" in result.stdout


def test_two_commits_and_two_folders_are_arms(project: Project) -> None:
    first = project.commit()
    project.pace("PACE = 3\n")
    second = project.commit()
    words = (f"--perf-load={project.fake},models.py", "--model", "mine", *CELL, "--max-pairs", "6")
    path = os.pathsep.join([str(ROOT), str(project.folder / "lib")])  # a command reads no settings of pytest
    ab = (sys.executable, "-m", "ipexperf.cli", "ab", "--a", f"git:{first}", "--b", ".", *words, "--fail")
    result = project.run(*ab, path=path)
    assert result.returncode == 1, result.stdout + result.stderr
    assert f"git:{first[:12]}" in result.stdout
    assert "differs  lib/pace.py:1 'PACE = 1' -> 'PACE = 3'" in result.stdout
    against = project.test(f"--perf-against=git:{second}")
    assert against.returncode == 0, against.stdout
    assert project.git("status", "--porcelain", "--untracked-files=no") == ""
    assert len(project.git("worktree", "list").splitlines()) == 1
    assert (project.folder / ".ipexperf" / ".gitignore").read_text() == "*\n"


def test_a_cache_that_came_with_a_commit_is_not_used(project: Project) -> None:
    """It had a faster file in the place of the commit's, so that any slowdown was one of the other arm too."""
    commit = project.commit()
    planted = project.folder / ".ipexperf" / "sources" / commit[:12] / "lib" / "pace.py"
    planted.parent.mkdir(parents=True)
    planted.write_text("PACE = 9\n")
    project.git("add", "--force", ".ipexperf")
    for result in (project.test(), project.test("--perf-against=git:HEAD")):
        assert result.returncode == 4, result.stdout
        assert "git tracks .ipexperf/sources/" in result.stderr + result.stdout


def test_a_source_that_names_other_files_than_its_baseline_is_refused_and_nothing_is_written(project: Project) -> None:
    project.accept()
    [path] = (project.folder / "baselines" / "sources").iterdir()
    document = json.loads(path.read_text())
    entry = {"digest": hashlib.sha256(b"planted").hexdigest()[:16], "lines": ["planted"]}
    document["files"]["../../../../planted.txt"] = entry
    path.write_text(json.dumps(document))
    project.pace("PACE = 3\n")
    result = project.test()
    assert result.returncode == 4, result.stdout
    assert f"{path.relative_to(project.folder)} has other files than its baseline" in result.stderr + result.stdout
    assert not list(project.folder.parent.rglob("planted.txt"))


def test_accepting_removes_nothing_in_a_folder_that_a_link_leads_to(project: Project) -> None:
    project.test()
    own = project.folder.parent / "own"
    own.mkdir()
    (own / "mine.json").write_text("{}")
    (project.folder / "baselines").mkdir()
    (project.folder / "baselines" / "sources").symlink_to(own)
    done = project.started("ipexperf", "baseline", "accept", "last", "--reason", "right")
    assert done.returncode == 2, done.stdout
    assert "baselines/sources is a link" in done.stderr
    assert [path.name for path in own.iterdir()] == ["mine.json"]


def test_a_model_that_a_commit_lacks_is_not_measured_beside_it_and_the_others_are(project: Project) -> None:
    """As in a pull request that adds one to a file of `--perf-load`."""
    project.commit()
    text = (project.folder / "models.py").read_text()
    (project.folder / "models.py").write_text(text + MODEL[MODEL.index("@") :].replace('"mine"', '"added"'))
    result = project.test("--model=added", "--perf-against=git:HEAD", "--perf-max-pairs=2", "--perf-tolerance=0.9")
    assert "NOT MEASURED (1): the arm of --perf-against: unknown model 'added'" in " ".join(result.stdout.split())
    assert "2 passed" in result.stdout
    assert result.returncode == 0
