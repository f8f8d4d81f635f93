"""The folder of the locks: all users may write there, so nothing in it is trusted."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ipexperf.conduct import device_lock
from ipexperf.conduct.device_lock import Folder
from ipexperf.conduct.device_lock import Holder as Note
from ipexperf.errors import UsageError
from ipexperf.variables import LEASES

WAYS_OUT = (
    ": let IPEXPERF_LEASES name a folder that every user of this host may write to, or measure without a lease "
    "(--perf-lease off)"
)


@pytest.fixture
def folder(leases: Path) -> Folder:
    return Folder(leases)


def test_every_user_may_lock(tmp_path: Path) -> None:
    """Whatever the umask of the first user. Only the owner of a file may remove it."""
    before = os.umask(0o077)
    try:
        os.close(Folder(tmp_path / "new").open("cpu"))
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
    assert Folder.of_host().path == tmp_path / "host"


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
    assert refused(tmp_path / "link") == "it is a link"


def test_links_of_other_users_are_not_followed(folder: Folder, tmp_path: Path) -> None:
    """Through a link we would write into a file of our own."""
    ours = tmp_path / "ours"
    ours.write_text("precious")
    (folder.path / "link.lease").symlink_to(ours)
    (folder.path / "nowhere.lease").symlink_to(tmp_path / "new")
    (folder.path / "folder.lease").mkdir()
    reasons = {device: why_not(folder, device) for device in folder.devices()}
    assert reasons == {
        "link": "link.lease: it is a link",
        "nowhere": "nowhere.lease: it is a link",
        "folder": "folder.lease: is a directory",
    }
    assert ours.read_text() == "precious"
    assert not (tmp_path / "new").exists()


@given(st.binary(max_size=300))
@example(b'{"pid": 1}')
@example(json.dumps({"pid": "x", "user": "a", "command": "b", "since": "c"}).encode())
def test_an_invalid_note_is_ignored(text: bytes) -> None:
    """Every user may write to the file, so it may contain anything."""
    assert Note.parse(text) is None


@given(st.text(), st.text(max_size=400))
def test_a_note_has_no_control_characters_for_the_terminal_of_its_reader(user: str, command: str) -> None:
    note = Note.parse(json.dumps({"pid": 7, "user": user, "command": command, "since": "\033[2J"}).encode())
    assert note is not None
    assert note.text(7).isprintable()
    assert len(note.command) <= device_lock.LONGEST


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["/home/anna/.venv/bin/pytest", "suites/"], "pytest suites/"),
        (["/lib/python/site-packages/pytest/__main__.py", "suites/"], "pytest suites/"),
        (["pytest", "--perf-db=postgresql://anna:secret@db/history"], "pytest --perf-db=postgresql://***@db/history"),
        (["pytest", "--api-token", "secret", "MY_KEY=secret"], "pytest --api-token *** MY_KEY=hidden-1e858334"),
        ([""], "python"),
    ],
)
def test_a_holder_is_shown_by_its_command_without_secrets(words: list[str], text: str) -> None:
    assert device_lock._command(words) == text
