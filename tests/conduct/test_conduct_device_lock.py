"""The folder of the locks: all users may write there, so nothing in it is trusted."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from lease_holder import Holder

from ipexperf.conduct import device_lock
from ipexperf.conduct.device_lock import DeviceLock, Folder
from ipexperf.conduct.device_lock import Holder as Note
from ipexperf.errors import UsageError
from ipexperf.variables import LEASES

MARK = device_lock.TOKENS_END + 7
WAYS_OUT = (
    ": let IPEXPERF_LEASES name a folder that every user of this host may write to, or measure without a lease "
    "(--perf-lease off)"
)


@pytest.fixture
def folder(leases: Path) -> Iterator[Folder]:
    folder = Folder(leases)
    yield folder
    folder.close()


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_every_user_may_lock(umask: int, tmp_path: Path) -> None:
    """Whatever the umask of the first user. Only the owner of a file may remove it."""
    before = os.umask(umask)
    try:
        folder = Folder(tmp_path / "new")
        os.close(folder.open("cpu"))
        folder.close()
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o1777
    assert stat.S_IMODE((tmp_path / "new" / "cpu.lease").stat().st_mode) == 0o666


def test_the_folder_is_the_same_for_all_unless_a_variable_says_otherwise(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It does not depend on $TMPDIR, which differs between users and jobs."""
    monkeypatch.delenv(LEASES)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(device_lock, "FOLDER", tmp_path / "host")
    with_default = Folder.of_host()
    with_default.close()
    assert with_default.path == tmp_path / "host"


def reason(error: UsageError, path: Path) -> str:
    """The reason in a sentence that also says where, and what else to do."""
    text = str(error)
    assert text.startswith(f"no lease can be taken in {path}: ")
    assert text.endswith(WAYS_OUT)
    return text.removeprefix(f"no lease can be taken in {path}: ").removesuffix(WAYS_OUT)


def refused(path: Path) -> str:
    with pytest.raises(UsageError) as error:
        Folder(path)
    return reason(error.value, path)


def why_not(folder: Folder, name: str) -> str:
    with pytest.raises(UsageError) as error:
        folder.open(name)
    return reason(error.value, folder.path)


def test_an_impossible_folder_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to(tmp_path)
    assert refused(tmp_path / "no" / "such") == "no such file or directory"
    assert refused(tmp_path / "file") == "not a directory"
    assert refused(tmp_path / "file" / "below") == "not a directory"
    assert refused(tmp_path / "link") in ("it is a link", "not a directory")


@pytest.mark.skipif(os.getuid() == 0, reason="this user may write anywhere")
def test_a_folder_without_rights_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o500)
    assert why_not(Folder(tmp_path / "closed"), "cpu") == "cpu.lease: permission denied"


@pytest.mark.parametrize(("code", "words"), [("ENOSPC", "no space left on device"), ("EROFS", "read-only file system")])
def test_a_full_or_read_only_folder_is_one_sentence(
    code: str, words: str, folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def make(*_: object) -> int:
        number = getattr(errno, code)
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(folder, "_make", make)
    assert why_not(folder, "cpu") == f"cpu.lease: {words}"


def test_links_and_pipes_of_other_users_are_not_opened(folder: Folder, tmp_path: Path) -> None:
    """Through a link we would write into a file of our own, and a pipe would block for ever."""
    ours = tmp_path / "ours"
    ours.write_text("precious")
    (folder.path / "link.lease").symlink_to(ours)
    (folder.path / "hard.lease").hardlink_to(ours)
    (folder.path / "nowhere.lease").symlink_to(tmp_path / "new")
    os.mkfifo(folder.path / "pipe.lease")
    (folder.path / "folder.lease").mkdir()
    reasons = {device: why_not(folder, device) for device in folder.devices()}
    assert reasons == {
        "link": "link.lease: it is a link",
        "nowhere": "nowhere.lease: it is a link",
        "hard": "hard.lease is not a file of its own",
        "pipe": "pipe.lease is not a file of its own",
        "folder": "folder.lease: is a directory",
    }
    assert ours.read_text() == "precious"
    assert not (tmp_path / "new").exists()


def test_a_deleted_lock_file_is_made_again(folder: Folder) -> None:
    """A lock on a deleted file would exclude nobody."""
    lock = DeviceLock(folder, "cpu")
    (folder.path / "cpu.lease").unlink()
    token = device_lock.new_token()
    assert not lock.acquire(token, shared=False)
    assert lock.acquire(token, shared=False)
    assert (folder.path / "cpu.lease").read_text()
    lock.release()


@pytest.mark.process
def test_a_waiter_whose_lock_file_was_deleted_finds_the_new_one(folder: Folder) -> None:
    """Its place in the queue was a byte of the deleted file."""
    lock, token = DeviceLock(folder, "cpu"), device_lock.new_token()
    with Holder("cpu") as old:
        old.held()
        assert not lock.acquire(token, shared=False)
        (folder.path / "cpu.lease").unlink()
        old.kill()
        assert [lock.acquire(token, shared=False) for _ in range(2)] == [False, True]
    with Holder("cpu") as later:
        assert "the CPU is not free" in later.refused()
    lock.release()


@given(st.binary(max_size=300))
@example(b'{"mark": 1}')
@example(b"[" * 4000)
@example(json.dumps({"mark": "1", "user": "a", "command": "b", "since": "c"}).encode())
@example(json.dumps({"mark": MARK, "user": ["a"], "command": "b", "since": "c"}).encode())
@example(json.dumps({"mark": 2**63, "user": "a", "command": "b", "since": "c"}).encode())
def test_an_invalid_note_is_ignored(text: bytes) -> None:
    """Every user may write to the file, so it may contain anything."""
    assert Note.parse(text) is None


@given(st.text(), st.text(max_size=400))
def test_a_note_has_no_control_characters_for_the_terminal_of_its_reader(user: str, command: str) -> None:
    note = Note.parse(json.dumps({"mark": MARK, "user": user, "command": command, "since": "\033[2J"}).encode())
    assert note is not None
    assert note.text(7).isprintable()
    assert len(note.command) <= device_lock.LONGEST


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["/home/anna/.venv/bin/pytest", "suites/"], "pytest suites/"),
        (["/lib/python/site-packages/pytest/__main__.py", "suites/"], "pytest suites/"),
        (["pytest", "--perf-db=postgresql://anna:secret@db/history"], "pytest --perf-db=postgresql://***@db/history"),
        ([], "python"),
        ([""], "python"),
    ],
)
def test_a_holder_is_shown_by_its_command_without_secrets(words: list[str], text: str) -> None:
    assert device_lock._command(words) == text


@pytest.mark.process
def test_other_files_of_the_folder_are_not_opened(folder: Folder) -> None:
    """Closing one would release the locks that this process has on it."""
    (folder.path / "history.db").write_text("precious")
    os.mkfifo(folder.path / "pipe")
    with Holder("cpu") as other:
        other.held()
        assert folder.devices() == list(device_lock.holders(folder)) == ["cpu"]


@pytest.mark.process
def test_a_false_note_is_not_believed(folder: Folder) -> None:
    """Only the kernel knows who holds a lock."""
    with Holder("cpu") as other:
        other.held()
        note = {"mark": MARK, "user": "somebody", "command": "else", "since": "ever"}
        (folder.path / "cpu.lease").write_text(json.dumps(note))
        assert device_lock.holders(folder) == {
            "cpu": f"process {other.pid} of {device_lock._user(os.getuid())} holds it"
        }
