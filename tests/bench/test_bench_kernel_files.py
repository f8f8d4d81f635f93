"""The files of /proc and /sys: a file that is missing or unreadable has no text, and a process has its fields."""

from __future__ import annotations

import os
from pathlib import Path

from ipexperf.bench.machine import kernel_files


def test_the_text_of_a_file_has_no_white_space_around_it_and_a_missing_file_has_none(tmp_path: Path) -> None:
    """An unreadable one neither. Bytes that are no text are replaced."""
    (tmp_path / "name").write_bytes(b"card \xff\n")
    assert kernel_files.text(tmp_path / "name") == "card \N{REPLACEMENT CHARACTER}"
    (tmp_path / "empty").touch()
    assert kernel_files.text(tmp_path / "empty") == ""
    assert kernel_files.text(tmp_path / "missing") is None
    assert kernel_files.text(tmp_path) is None


def test_the_fields_of_a_process_begin_with_its_state_and_its_parent() -> None:
    state, parent = kernel_files.stat_fields("self")[:2]
    assert (state, int(parent)) == ("R", os.getppid())
