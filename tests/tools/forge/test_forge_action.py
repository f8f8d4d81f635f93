"""The action of this repository: a shell runs its steps as a runner does, and a forge of ours answers."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from forge_server import serving

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[3]
ACTION = (ROOT / "action.yml").read_text()
PULLS = [ROOT / "docs" / "ci" / name for name in ("github-pull.yml", "github-pull-comment.yml", "gitlab-pull.yml")]
FUNCTION = "def work(n=20_000):\n    return sum(i * i for i in range(n))\n"
SLOWER = FUNCTION.replace("range(n)", "range(2 * n)")
TEST = "from mine import work\n\n\ndef test_work(perf):\n    perf(work)\n"


def steps() -> dict[str, str]:
    """The script of each step, by its name."""
    found = re.findall(r"- name: (\w+)\n(.*?)(?=\n    - name|\Z)", ACTION, re.DOTALL)
    scripts = {name: text.partition("run: ")[2].removeprefix("|\n") for name, text in found}
    return {name: re.sub(r"^ {8}", "", script, flags=re.MULTILINE) for name, script in scripts.items()}


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
        for name in ("Measure", "Comment"):
            # As a runner starts bash.
            command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", steps()[name]]
            done = subprocess.run(command, cwd=clone, env=environment, check=False, capture_output=True, text=True)
            assert done.returncode == 0, done.stdout + done.stderr
        [body] = forge.comments.values()
    assert len(list(clone.glob("ipexperf-dossiers/*/index.html"))) == 1
    assert "### ipexperf: 1 worse" in body
    assert "`test_mine.py::test_work`" in body
    assert "range(2" in body
    assert "OTHERS" not in body
    assert body in (tmp_path / "summary").read_text()
    assert (tmp_path / "output").read_text() == "status=1\n"
    assert steps()["Answer"] == 'exit "$STATUS"\n'


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
