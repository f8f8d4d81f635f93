"""The files of /proc and /sys: a file that is missing or unreadable has no text, and a process has its fields."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ipexperf.bench.machine import kernel_files


def test_the_text_of_a_file_has_no_white_space_around_it(tmp_path: Path) -> None:
    (tmp_path / "vendor").write_text("0x8086\n")
    assert kernel_files.text(tmp_path / "vendor") == "0x8086"


def test_an_empty_file_has_an_empty_text_and_a_missing_one_none(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    assert kernel_files.text(tmp_path / "empty") == ""
    assert kernel_files.text(tmp_path / "missing") is None


def test_a_file_that_cannot_be_read_has_no_text(tmp_path: Path) -> None:
    assert kernel_files.text(tmp_path) is None


def test_bytes_that_are_no_text_are_replaced(tmp_path: Path) -> None:
    (tmp_path / "name").write_bytes(b"card \xff")
    assert kernel_files.text(tmp_path / "name") == "card \N{REPLACEMENT CHARACTER}"


def test_the_fields_of_a_process_begin_with_its_state_and_its_parent() -> None:
    state, parent = kernel_files.stat_fields("self")[:2]
    assert state == "R"
    assert int(parent) == os.getppid()


def test_the_fields_of_a_process_that_has_ended_cannot_be_read() -> None:
    beyond_any_pid = 2**22 + 1
    with pytest.raises(FileNotFoundError):
        kernel_files.stat_fields(beyond_any_pid)
