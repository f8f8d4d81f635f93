"""What is told of the source that is measured: its commit, its branch, and whether it was changed since."""

import subprocess
from pathlib import Path

import pytest

from ipexperf.bench.process import environment

pytestmark = pytest.mark.process

AUTHOR = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "commit.gpgsign=false")


def git(folder: Path, *arguments: str) -> str:
    """Asks git, whose hooks and settings of this machine have no part in it."""
    command = ["git", "-C", str(folder), *AUTHOR, "-c", "core.hooksPath=/dev/null", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository of one commit on the branch `mine`, in no CI system."""
    for name in environment.BRANCHES:
        monkeypatch.delenv(name, raising=False)
    git(tmp_path, "init", "--quiet")
    (tmp_path / "tracked").write_text("one")
    git(tmp_path, "add", "tracked")
    git(tmp_path, "commit", "--quiet", "-m", "One")
    git(tmp_path, "checkout", "--quiet", "-b", "mine")
    return tmp_path


@pytest.fixture
def detached(repository: Path) -> Path:
    """The same with the commit alone checked out, as CI systems do it."""
    git(repository, "checkout", "--quiet", "--detach")
    return repository


def test_a_folder_outside_git_has_no_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no repository, commit, branch and changes are unknown, not clean; a CI system changes nothing."""
    monkeypatch.setenv("GITHUB_REF_NAME", "main")
    assert environment.source(tmp_path) == {"commit": None, "branch": None, "dirty": None}


def test_a_branch_is_what_git_says(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a CI system says beside it."""
    monkeypatch.setenv("GITHUB_HEAD_REF", "theirs")
    commit = git(repository, "rev-parse", "HEAD")
    assert environment.source(repository) == {"commit": commit, "branch": "mine", "dirty": False}
    (repository / "tracked").write_text("two")
    assert environment.source(repository)["dirty"] is True


def test_uncommitted_changes_are_named_by_content(repository: Path) -> None:
    """Two checkouts of one commit may be two programs. What is only staged counts, and bytes that are no text."""
    changes = []
    for content in (b"two", b"three", b"\xff\x00", b"two"):
        (repository / "tracked").write_bytes(content)
        changes.append(environment.source(repository)["changes"])
    git(repository, "add", "tracked")
    changes.append(environment.source(repository)["changes"])
    assert len(set(changes)) == 3
    assert changes[0] == changes[3] == changes[4]


def test_on_a_detached_head_the_branch_is_the_ci_systems(detached: Path) -> None:
    """Or runs of all branches would be those of one that is called HEAD.

    The name of what is merged goes before that of the merge; where nobody has one, it is git's HEAD.
    """
    for variables, branch in [
        *(({variable: "feature/faster"}, "feature/faster") for variable in environment.BRANCHES),
        ({}, "HEAD"),
        ({"GITHUB_HEAD_REF": "", "GITHUB_REF_NAME": ""}, "HEAD"),
        ({"GITHUB_HEAD_REF": "", "GITHUB_REF_NAME": "main"}, "main"),
        ({"GITHUB_HEAD_REF": "feature", "GITHUB_REF_NAME": "12/merge"}, "feature"),
        ({"BRANCH_NAME": "PR-12", "CHANGE_BRANCH": "feature"}, "feature"),
    ]:
        assert environment.source(detached, variables)["branch"] == branch, variables
