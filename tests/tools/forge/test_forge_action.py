"""The action of this repository: a shell runs its steps as a runner does, and a forge of ours answers."""

import dataclasses
import json
import os
import re
import subprocess
import sys
import sysconfig
import textwrap
from pathlib import Path

import pytest
from forge_server import HEAD, planted, serving

from ipexperf.tools.forge import comment

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[3]
ACTION = (ROOT / "action.yml").read_text()
PULLS = [ROOT / "docs" / "ci" / name for name in ("github-pull.yml", "github-pull-comment.yml", "gitlab-pull.yml")]
FUNCTION = "def work(n=20_000):\n    return sum(i * i for i in range(n))\n"
SLOWER = FUNCTION.replace("range(n)", "range(2 * n)")
TEST = "from mine import work\n\n\ndef test_work(perf):\n    perf(work)\n"


STEP = r"^ +- (?:name: (\w+)|uses: [^\n]*/([\w-]+)@\w+[^\n]*)\n(.*?)(?=^ +- (?:name|uses)|\Z)"


def steps(text: str) -> dict[str, str]:
    """What a file says of each step, by its name or by what it uses, in their order."""
    found = re.findall(STEP, text, re.MULTILINE | re.DOTALL)
    return {name or used: step for name, used, step in found}


def script(step: str) -> str:
    return textwrap.dedent(step.partition("run: ")[2].removeprefix("|\n"))


def bash(script: str, folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a script as a runner does."""
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
    return subprocess.run(command, cwd=folder, env=environment, check=False, capture_output=True, text=True)


def plant(folder: Path) -> Path:
    """Files that Python would import from the folder where it is started. Returns the file that they write."""
    for name in ("venv.py", "pip.py", "json.py", "sitecustomize.py", "ipexperf/__init__.py", "ipexperf/cli.py"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"open({str(folder / 'executed')!r}, 'a').write(__file__)\n")
    return folder / "executed"


def git(folder: Path, *words: str) -> str:
    identity = ("-c", "user.name=me", "-c", "user.email=me@here")
    done = subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.mark.process
def test_a_pull_request_gets_one_comment_and_the_status_of_its_tests(tmp_path: Path) -> None:
    """A slower function is named with its line; the job fails in its last step, after the comment."""
    origin, clone = tmp_path / "origin", tmp_path / "clone"
    origin.mkdir()
    git(origin, "init", "-q", "-b", "main")
    (origin / "mine.py").write_text(FUNCTION)
    (origin / "test_mine.py").write_text(TEST)
    (origin / "pytest.ini").write_text("[pytest]\npythonpath = .\n")
    git(origin, "add", ".")
    git(origin, "commit", "-qm", "base")
    git(tmp_path, "clone", "-q", f"file://{origin}", "clone")
    (clone / "mine.py").write_text(SLOWER)
    git(clone, "commit", "-qam", "slower")
    # What others merge meanwhile is not what this branch costs.
    (origin / "mine.py").write_text(FUNCTION + "\n\nOTHERS = 1\n")
    git(origin, "commit", "-qam", "of others")
    git(clone, "fetch", "-q")
    (tmp_path / "event.json").write_text(json.dumps({"pull_request": {"number": 5}}))
    with serving() as forge:
        environment = {
            **os.environ,
            **forge.github(),
            "GITHUB_EVENT_PATH": str(tmp_path / "event.json"),
            "GITHUB_OUTPUT": str(tmp_path / "output"),
            "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
            "TESTS": "test_mine.py -p no:cacheprovider",
            "BASE": "",
            "GITHUB_BASE_REF": "main",
            "NAME": "performance",
            "PERF_PYTHON": sys.executable,
        }
        for name in ("Measure", "Comment", "Post"):
            done = bash(script(steps(ACTION)[name]), clone, environment)
            assert done.returncode == 0, done.stdout + done.stderr
            executed = plant(clone)  # as the tests of the pull request may
        [body] = forge.comments.values()
    assert not executed.exists()
    assert len(list(clone.glob("ipexperf-dossiers/*/index.html"))) == 1
    assert "### ipexperf: 1 worse" in body
    assert "`test_mine.py::test_work`" in body
    assert "range(2" in body
    assert "OTHERS" not in body
    assert body in (tmp_path / "summary").read_text()
    assert (tmp_path / "output").read_text() == "status=1\n"
    assert script(steps(ACTION)["Answer"]) == 'exit "$STATUS"\n'


ABOUT = {
    "METADATA": "Metadata-Version: 2.1\nName: ipexperf\nVersion: 0\n",
    "WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "RECORD": "",
    "entry_points.txt": "[ipexperf.commands]\ncomment = ipexperf.tools.forge.command:add_comment\n",
}
BACKEND = """
import zipfile

def build_wheel(folder, *_):
    with zipfile.ZipFile(f"{folder}/ipexperf-0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("ipexperf.pth", PATHS)
        for name, text in ABOUT.items():
            wheel.writestr(f"ipexperf-0.dist-info/{name}", text)
    return "ipexperf-0-py3-none-any.whl"
"""


def installable(folder: Path) -> dict[str, str]:
    """Variables with which pip, offline, installs this ipexperf in place of that on GitHub."""
    (folder / "bin").mkdir(parents=True)
    for name in ("python", "python3"):
        (folder / "bin" / name).symlink_to(Path(sys.executable).resolve())
    git(folder, "init", "-q")
    (folder / "pyproject.toml").write_text(
        "[build-system]\nrequires = []\nbuild-backend = 'backend'\nbackend-path = ['.']\n"
    )
    paths = f"{ROOT}\n{sysconfig.get_path('purelib')}\n"
    (folder / "backend.py").write_text(f"PATHS, ABOUT = {paths!r}, {ABOUT!r}\n{BACKEND}")
    git(folder, "add", "pyproject.toml", "backend.py")
    git(folder, "commit", "-qm", "ipexperf")
    git(folder, "tag", "HASH")
    return {
        "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
        "PIP_NO_INDEX": "1",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.file://{folder}.insteadOf",
        "GIT_CONFIG_VALUE_0": re.findall(r"https://github.com/[\w-]+/ipexperf", PULLS[1].read_text())[0],
    }


def artifact(folder: Path, name: str) -> Path:
    """What a stranger's job left: data, and files that are to be executed. Returns what they would write."""
    folder.mkdir(parents=True, exist_ok=True)
    contents = comment.Contents((), (), (), "slow", fails=True, machine="epyc")
    (folder / name).write_text(json.dumps(dataclasses.asdict(contents)))
    return plant(folder)


@pytest.mark.process
def test_a_job_of_github_with_a_token_executes_nothing_of_an_artifact(tmp_path: Path) -> None:
    """It takes one file of it, as data, and no other in its place."""
    work, runner = tmp_path / "work", tmp_path / "runner"
    work.mkdir()
    runner.mkdir()
    (tmp_path / "event.json").write_text(json.dumps({"workflow_run": {"head_sha": HEAD}}))
    environment = {
        **os.environ,
        **installable(tmp_path / "tool"),
        "GITHUB_EVENT_PATH": str(tmp_path / "event.json"),
        "RUNNER_TEMP": str(runner),
        "LINK": "https://forge.test/run",
    }
    with serving() as forge:
        environment.update(forge.github())
        for name, step in steps(PULLS[1].read_text()).items():
            if name == "download-artifact":
                place = re.findall(r"path: (.*)", step)
                folder = Path(place[0].replace("${{ runner.temp }}", str(runner))) if place else work
                executed = artifact(folder, "ipexperf-comment.json")
            else:
                done = bash(script(step), work, environment)
                assert not list(tmp_path.rglob("executed")), done.stderr
                assert done.returncode == 0, done.stderr
        assert "[files of this run](https://forge.test/run)" in forge.comments[1]
        data = folder / "ipexperf-comment.json"
        for other in ("link", "huge"):
            data.unlink()
            planted(data, other)
            done = bash(script(step), work, environment)
            assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert len(forge.comments) == 1
        assert not executed.exists()


@pytest.mark.process
def test_a_job_of_gitlab_with_a_token_executes_nothing_of_an_artifact(tmp_path: Path) -> None:
    measures, _, comments = PULLS[2].read_text().partition("\ncomment on a merge request:\n")
    assert "GITLAB_TOKEN" not in measures.partition("\nperformance of a merge request:\n")[2]
    lines = re.findall(r"^    - (.*)$", comments.partition("script:\n")[2], re.MULTILINE)
    executed = artifact(tmp_path / "project", "comment.json")
    with serving() as forge:
        environment = {
            **{name: value for name, value in os.environ.items() if name != "GITHUB_ACTIONS"},
            **installable(tmp_path / "tool"),
            "GITLAB_CI": "true",
            "GITLAB_TOKEN": "secret",
            "CI_API_V4_URL": forge.address,
            "CI_PROJECT_ID": "3",
            "CI_PROJECT_DIR": str(tmp_path / "project"),
            "CI_PIPELINE_URL": "https://forge.test/run",
            "CI_MERGE_REQUEST_IID": "8",
        }
        done = bash("\n".join(lines), tmp_path / "project", environment)
        assert not executed.exists()
        assert done.returncode == 0, done.stderr
        assert "[files of this run](https://forge.test/run)" in forge.comments[1]


@pytest.mark.process
@pytest.mark.parametrize("event", ["pull_request_target", "workflow_run"])
def test_a_job_that_has_secrets_is_not_one_to_measure_in(tmp_path: Path, event: str) -> None:
    environment = {**os.environ, "GITHUB_EVENT_NAME": event, "PERF_PYTHON": "false", "BASE": ""}
    done = bash(script(steps(ACTION)["Measure"]), tmp_path, environment)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert event in done.stderr


@pytest.mark.parametrize("path", [ROOT / "action.yml", *PULLS], ids=lambda path: path.name)
def test_no_word_of_a_stranger_becomes_part_of_a_script(path: Path) -> None:
    """What an expression gives is a variable of the step, and never text of its script."""
    scripts = re.findall(r"run: (?:\|\n((?: {8,}.*\n)+)|(.*))", path.read_text())
    assert all("${{" not in "".join(script) for script in scripts)


def test_the_job_that_may_write_runs_nothing_of_the_pull_request() -> None:
    """It has a token that writes, and neither checks code out nor installs it. The other has no such token."""
    measures, comments = (path.read_text() for path in PULLS[:2])
    assert "pull-requests: write" in comments
    assert "checkout" not in comments
    assert "pull_request_target" not in measures + comments
    assert ": write" not in measures
    assert "persist-credentials: false" in measures
    assert "name: ipexperf-comment\n          path: ipexperf-comment.json\n" in measures
    for text, posts in ((ACTION, "Post"), (comments, "Comment")):
        assert [name for name, step in steps(text).items() if "GITHUB_TOKEN" in step] == [posts]
