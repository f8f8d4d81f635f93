"""`ipexperf bisect` among versions of a package and commits: the first slow one, past those that cannot be had."""

import functools
import http.server
import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parents[2] / "environments"))
from small_wheels import a_wheel, an_unpacked_environment

from ipexperf import cli
from ipexperf.bench.machine.source import Replaced
from ipexperf.errors import UsageError
from ipexperf.plan.drivers import LIBRARY
from ipexperf.tools.bisect import versions
from ipexperf.tools.bisect.commits import AtCommit, Repository

pytestmark = [pytest.mark.long, pytest.mark.process]
CELL = ("--model", "paced", "--device", "fake", "--dtype", "fp32", "--mode", "spin", "--stack", "plain")
DRIVER = """
    import importlib, os, re, signal, subprocess, sys, time
    from ipexperf import cli
    from ipexperf.tools.bisect.answers import Measured
    from ipexperf.tools.bisect.laboratory import Laboratory
    from ipexperf.judge.bisection import Answer
    from ipexperf.ratio import Ratio

    count = 0

    def measured(self, against):
        '''A clock that is right: it reads the pace that each arm would import.'''
        global count
        count += 1
        if count == int(os.environ.get("KILL_AT", "0")):
            os.kill(os.getpid(), int(os.environ["KILL_BY"]))
            time.sleep(30)
        paces = []
        for words in (against.words, against.own):
            env = {name: value for name, value in words.variables.items() if value != "\\0"}
            command = [words.python, "-c", "import pace; print(pace.TIMES)"]
            paces.append(int(subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout))
        ratio = paces[1] / paces[0]
        answer = Answer.BAD if ratio > 1 else Answer.GOOD
        return Measured(answer, "seen", Ratio(ratio, ratio, ratio), machine="here")

    Laboratory._compared = measured
    status = cli.main(sys.argv[1:])
    print(f"measured {count}", file=sys.stderr)
    sys.exit(status)
"""


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An environment that no search changes."""
    folder = tmp_path_factory.mktemp("good")
    pace = "import os\nTIMES = 2 if '/late' in os.environ.get('ZE_ENABLE_ALT_DRIVERS', '') else 1\n"
    wheels = [a_wheel(folder, "dep", "1.0", {"dep.py": ""}), a_wheel(folder, "pace", "0.9", {"pace.py": pace})]
    return an_unpacked_environment(folder / "good", *wheels)


@pytest.fixture
def command(tmp_path: Path, fake: str, good: str) -> Callable[..., subprocess.CompletedProcess[str]]:
    driver = tmp_path / "driver.py"
    driver.write_text(textwrap.dedent(DRIVER))

    def run(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        root = str(Path(__file__).parents[3])
        return subprocess.run(
            [sys.executable, str(driver), "bisect", "--good", good, f"--perf-load={fake}", *CELL, *words],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": root, **variables},
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )

    return run


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    """Versions whose names sort otherwise than they follow; 1.3 does not fit beside the others."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    for version, times in (("1.0", 1), ("1.2", 1), ("1.3", 1), ("1.9", 1), ("1.10", 2), ("1.11", 2)):
        requires = ("dep>=2",) if version == "1.3" else ()
        a_wheel(folder, "pace", version, {"pace.py": f"TIMES = {times}\nV = '{version}'\n"}, requires)
    return folder


def test_the_first_slow_version_is_named_and_a_killed_search_goes_on(
    command: Callable[..., subprocess.CompletedProcess[str]], index: str
) -> None:
    """pip says which there are, and uv installs each: pip's setting is known to both."""
    search = functools.partial(command, "--package", "pace", "--versions", "1.0..1.11", PIP_INDEX_URL=index)
    killed = search(KILL_AT="3", KILL_BY=str(int(signal.SIGKILL)))
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    done = search()
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("CULPRIT: pace 1.10 is the first that is slower: the one before it is not\n"
                                  "  pace: 1.9 -> 1.10\n")  # fmt: skip
    assert done.stderr.count("known from an earlier try") == 2
    assert "5 differences between both ends" in done.stderr
    again = search()
    assert (again.stdout, again.stderr.splitlines()[-1]) == (done.stdout, "measured 0")


@pytest.fixture
def index(wheels: Path) -> Iterator[str]:
    """An index of these wheels, and a wheel of another Python."""
    names = ["pace-1.5-cp27-cp27m-win32.whl", *sorted(path.name for path in wheels.iterdir())]
    links = "".join(f'<a href="../../{name}">{name}</a><br>' for name in names)
    page = wheels / "simple" / "pace" / "index.html"
    page.parent.mkdir(parents=True)
    page.write_text(f"<!DOCTYPE html><html><body>{links}</body></html>")

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *words: object) -> None:
            del words

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=wheels)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/simple"
        server.shutdown()
        thread.join()


def test_the_first_slow_driver_is_named(
    command: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    folders = [tmp_path / name for name in ("1", "2", "late3", "late4")]
    for folder in folders:
        folder.mkdir()
        (folder / LIBRARY).symlink_to(sys.executable)
    found = command("--drivers", ",".join(map(str, folders)))
    assert found.stdout.startswith(f"CULPRIT: driver {folders[2]} is the first that is slower"), found.stderr


def test_an_index_says_which_versions_lie_between(index: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the order of versions, and none of another Python."""
    python = ".".join(map(str, sys.version_info[:3]))
    monkeypatch.setenv("PIP_INDEX_URL", index)
    assert versions.named("1.2..1.10", "pace", python) == ["1.2", "1.3", "1.9", "1.10"]
    with pytest.raises(UsageError, match=r"no index answers with wheels of nothing for Python 3"):
        versions.named("1..2", "nothing", python)


def test_versions_that_are_listed_stay_in_their_order() -> None:
    assert versions.named("2.0, 1.0", "pace", "3.11.7") == ["2.0", "1.0"]


def git(folder: Path, *words: str) -> str:
    name = ("-c", "user.name=A Author", "-c", "user.email=a@b.c")
    done = subprocess.run(["git", *name, "-C", str(folder), *words], check=True, capture_output=True, text=True)
    return done.stdout


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    folder.mkdir()
    git(folder, "init", "-q")
    for number, times in enumerate((1, 1, 1, 2, 2)):
        (folder / "pace.py").write_text(f"TIMES = {times}\nNUMBER = {number}\n")
        (folder / "build.sh").write_text("exit 7\n" if number == 1 else "true\n")
        git(folder, "add", ".")
        git(folder, "commit", "-qm", f"change {number}")
    return folder


def test_the_first_slow_commit_is_named_past_one_that_does_not_build(
    command: Callable[..., subprocess.CompletedProcess[str]], repository: Path
) -> None:
    """A build may ask git which version this is, and the user's repository learns of no commit that is measured."""
    git(repository, "tag", "-a", "v1", "-m", "v1", "HEAD~4")
    versions = repository.parent / "versions"
    before = [path for path in (repository / ".git").rglob("*") if path.name != "index"]
    build = f"sh build.sh && test ! -e {repository}/.git/worktrees && git describe --dirty --long >> {versions}"
    done = command("--commits", "HEAD~4..HEAD", "--repo", str(repository), "--build", build)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("CULPRIT: commit ")
    assert "change 3 (A Author, " in done.stdout.splitlines()[1]
    assert {line.rpartition("-")[0] for line in versions.read_text().splitlines()} == {f"v1-{n}" for n in (0, 2, 3, 4)}
    assert [path for path in (repository / ".git").rglob("*") if path.name != "index"] == before


def test_a_file_that_names_a_network_is_that_of_the_commit(repository: Path, tmp_path: Path) -> None:
    """It was the user's own file on both sides, so that nothing was found: `--model file.py:net` is not imported."""
    base: Any = SimpleNamespace(python=sys.executable, lock=SimpleNamespace(variables=(), digest="0"))
    source = Repository(repository)
    for commit, times in zip(source.commits("HEAD~4..HEAD"), (1, 1, 1, 2, 2), strict=True):
        with AtCommit(base, source, commit).ready(tmp_path, print) as installed:
            replaced = Replaced.of(dict(installed.variables))
            assert replaced is not None
            assert replaced.moved(repository / "pace.py").read_text().startswith(f"TIMES = {times}\n")


def test_a_wheel_that_a_build_leaves_is_installed(
    command: Callable[..., subprocess.CompletedProcess[str]], repository: Path, tmp_path: Path
) -> None:
    """Not the clone: it is gone by then, and the neighbours' locks have the wheel."""
    build = repository.parent / "build.py"
    build.write_text(
        "import runpy, sys\nfrom pathlib import Path\n"
        f"sys.path.append({str(Path(__file__).parents[2] / 'environments')!r})\n"
        "from small_wheels import a_wheel\n"
        "Path('dist').mkdir()\n"
        "text = Path('pace.py').read_text()\n"
        "version = f\"1.{runpy.run_path('pace.py')['NUMBER']}\"\n"
        "a_wheel(Path('dist'), 'pace', version, {'pace.py': text})\n"
    )
    words = ("--commits", "HEAD~2..HEAD", "--repo", str(repository), "--build", f"{sys.executable} {build}")
    done = command(*words)
    assert done.returncode == 0, done.stderr
    assert "change 3 (A Author, " in done.stdout.splitlines()[1]
    locks = sorted((tmp_path / ".ipexperf/bisect").glob("*.txt"))
    pins = [next(line for line in lock.read_text().splitlines() if line.startswith("pace==")) for lock in locks]
    assert [pin.split()[0] for pin in pins] == ["pace==1.3", "pace==1.2"]
    assert command(*words).stderr.endswith("measured 0\n")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_no_clone_stays_after_a_search_that_was_ended(
    command: Callable[..., subprocess.CompletedProcess[str]], repository: Path, tmp_path: Path, number: signal.Signals
) -> None:
    """After SIGTERM at once, after SIGKILL with the next search."""
    words = ("--commits", "HEAD~4..HEAD", "--repo", str(repository))
    done = command(*words, KILL_AT="2", KILL_BY=str(int(number)))
    if number is signal.SIGTERM:
        assert done.returncode == 130, done.stderr
    else:
        assert list((tmp_path / ".ipexperf" / "bisect").glob(".ipexperf-commit-*"))
        assert command(*words).returncode == 0
    assert not list((tmp_path / ".ipexperf" / "bisect").glob(".ipexperf-commit-*"))


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--commits", "HEAD..HEAD~2"), "BAD is an ancestor of GOOD: are they exchanged?"),
        (("--commits", "HEAD~1..HEAD", "--build=sleep 99", "--perf-timeout=3"), "took more than 3 s (--perf-timeout)"),
        (("--package", "pace", "--versions", "1.0,x"), "Invalid version: 'x'"),
        (("--package", "pace", "--versions", "1.0"), "one version of pace"),
        (("--drivers", "old"), "--drivers old: a search needs two ends"),
        (("--drivers", "old,new,old"), "--drivers: old is there twice"),
        (("--drivers", "old,new"), "old is no folder: name one with the unpacked packages of a driver"),
    ],
)
def test_a_mistake_is_one_sentence(
    good: str,
    fake: str,
    request: pytest.FixtureRequest,
    words: tuple[str, ...],
    reason: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    repo = ("--repo", str(request.getfixturevalue("repository"))) if "--commits" in words else ()
    status = cli.main(["bisect", "--good", good, f"--perf-load={fake}", *CELL, *words, *repo])
    out, err = capsys.readouterr()
    assert (status, out) == (cli.USAGE_ERROR, "")
    (sentence,) = [line for line in err.splitlines() if not line.startswith("  ")]  # without lines of progress
    assert reason in sentence
