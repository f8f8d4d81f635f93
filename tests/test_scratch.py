"""Temporary folders: removed after their process has ended, and never before."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ipexperf import scratch

HOLD = """
import sys
from pathlib import Path
from ipexperf import scratch
with scratch.folder(sys.argv[2], Path(sys.argv[1])) as folder:
    (folder / "inside").mkdir()
    (folder / "inside" / "file").write_text("x")
    print(folder, flush=True)
    sys.stdin.read()
"""
MAKE_AND_GO = """
import sys
from pathlib import Path
from ipexperf import scratch
for _ in range(60):
    with scratch.folder("many", Path(sys.argv[1])) as folder:
        (folder / "file").write_text("x")
        assert [path.name for path in folder.iterdir()] == ["file"]
"""


@contextmanager
def holder(where: Path, purpose: str = "held") -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A process that has a folder in here, and the folder."""
    command = [sys.executable, "-c", HOLD, str(where), purpose]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process, Path(process.stdout.readline().strip())
        finally:
            process.kill()


def remains(where: Path, purpose: str = "dead") -> Path:
    """A folder with a file in it that a killed process left, without a lock."""
    made = scratch.Scratch(purpose, where)
    left = where / re.sub(r"-\w{8}$", "-abcdefgh", made.path.name)
    left.mkdir()
    (left / "file").write_text("x")
    made.close()
    assert sorted(where.iterdir()) == [left]
    return left


@pytest.mark.process
@pytest.mark.parametrize("purpose", ["held", "gw0"])
def test_the_next_folder_removes_those_of_killed_processes(tmp_path: Path, purpose: str) -> None:
    """A folder whose process lives is left alone."""
    with holder(tmp_path) as (alive, kept), holder(tmp_path, purpose) as (process, left):
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert (left / "inside" / "file").exists()
        with scratch.folder("next", tmp_path) as folder:
            assert sorted(tmp_path.iterdir()) == sorted([kept, folder])
        assert (kept / "inside" / "file").exists()
        assert alive.poll() is None
    assert sorted(tmp_path.iterdir()) == [kept]
    scratch.sweep(tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.process
def test_processes_that_sweep_at_the_same_time_do_not_disturb_one_another(tmp_path: Path) -> None:
    """Each sweeps while the others make and remove folders."""
    command = [sys.executable, "-c", MAKE_AND_GO, str(tmp_path)]
    processes = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    assert [process.communicate()[1] for process in processes] == [""] * 4
    assert not list(tmp_path.iterdir())


def test_the_folder_of_another_user_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even by root."""
    left = remains(tmp_path)
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    scratch.sweep(tmp_path)
    assert left.exists()


def test_a_folder_of_another_kernel_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a disk that several hosts share, each may see only its own locks."""
    left = remains(tmp_path)
    boot = tmp_path / "boot_id"
    boot.write_text("01234567-89ab-cdef-0123-456789abcdef\n")
    monkeypatch.setattr(scratch, "BOOT", boot)
    scratch.sweep(tmp_path)
    assert left.exists()


def test_a_folder_that_was_moved_away_is_not_removed(tmp_path: Path) -> None:
    with scratch.folder("moved", tmp_path) as folder:
        (folder / "file").write_text("x")
        folder.rename(tmp_path / "place")
    scratch.sweep(tmp_path)
    assert (tmp_path / "place" / "file").exists()


@pytest.mark.process
def test_only_the_process_that_made_a_folder_removes_it(tmp_path: Path) -> None:
    """Its forks do not."""
    made = scratch.Scratch("forked", tmp_path)
    pid = os.fork()
    if not pid:
        made.close()
        os._exit(0)
    os.waitpid(pid, 0)
    assert made.path.exists()
    made.close()


def test_no_other_room_makes_temporary_files_that_a_kill_would_leave() -> None:
    """Unnamed files (`TemporaryFile`) vanish by themselves. `scratch` makes all others."""
    package = Path(scratch.__file__).parent
    named = re.compile(r"mkdtemp|mkstemp|TemporaryDirectory|NamedTemporaryFile")
    users = {path.relative_to(package).as_posix() for path in package.rglob("*.py") if named.search(path.read_text())}
    assert users == {"scratch.py"}


def test_git_ignores_a_cache_of_the_usual_name_and_no_folder_that_the_user_named(tmp_path: Path) -> None:
    """Environments in it take gigabytes. What the user wrote into it stays."""
    scratch.made(tmp_path / ".ipexperf" / "environments" / "x")
    ignored = tmp_path / ".ipexperf" / ".gitignore"
    assert ignored.read_text() == "*\n"
    ignored.write_text("mine\n")
    scratch.made(tmp_path / ".ipexperf" / "weights")
    scratch.made(tmp_path / "named" / "weights")
    assert [path.read_text() for path in tmp_path.rglob(".gitignore")] == ["mine\n"]
