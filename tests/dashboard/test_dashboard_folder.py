"""A report is written as a whole or not at all, and never over something that is not a report."""

from pathlib import Path

import pytest

from ipexperf.dashboard import folder
from ipexperf.errors import UsageError


def write(target: Path, **files: str) -> None:
    with folder.whole(target) as new:
        for name, text in files.items():
            (new / name).write_text(text)


def half(target: Path) -> None:
    with folder.whole(target) as new:
        (new / "half").write_text("half")
        raise ZeroDivisionError


def beside(target: Path) -> list[str]:
    return sorted(path.name for path in target.parent.iterdir())


def test_a_report_replaces_nothing_an_empty_folder_and_a_report(tmp_path: Path) -> None:
    """The new one has nothing of the old one, and nothing temporary is left beside it."""
    target = tmp_path / "report"
    write(target, one="1")
    write(target, two="2")
    assert sorted(path.name for path in target.iterdir()) == [folder.MANIFEST, "two"]
    (tmp_path / "empty").mkdir()
    write(tmp_path / "empty", one="1")
    assert (tmp_path / "empty" / "one").read_text() == "1"
    assert beside(target) == ["empty", "report"]
    assert target.stat().st_mode & 0o777 == 0o755


def test_what_is_not_ours_is_refused_and_stays(tmp_path: Path) -> None:
    """A folder with files, a report with a file more, a manifest of somebody else's, a file, a link, no parent."""
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.tex").write_text("precious")
    report = tmp_path / "report"
    write(report, one="1")
    (report / "notes.txt").write_text("precious")
    other = tmp_path / "other"
    other.mkdir()
    (other / folder.MANIFEST).write_text('{"made_by": "me", "files": ["ipexperf-report.json"]}')
    bare = tmp_path / "bare"
    (bare / "deep").mkdir(parents=True)
    (tmp_path / "file").write_text("precious")
    (tmp_path / "link").symlink_to(report)
    for target, why in (
        (mine, "holds thesis.tex, which does not belong to a report"),
        (report, "holds notes.txt"),
        (other, f"holds {folder.MANIFEST}"),
        (bare, "holds deep"),
        (tmp_path / "file", "is not a folder"),
        (tmp_path / "link", "is not a folder"),
        (tmp_path / "no" / "report", "there is no folder"),
    ):
        with pytest.raises(UsageError, match=why):
            write(target, two="2")
    assert (mine / "thesis.tex").read_text() == (report / "notes.txt").read_text() == "precious"
    assert (report / "one").read_text() == "1"
    assert beside(report) == ["bare", "file", "link", "mine", "other", "report"]


def test_a_report_that_was_not_finished_is_not_there(tmp_path: Path) -> None:
    """An error on the way leaves the older report as it was, or nothing."""
    target = tmp_path / "report"
    for older in (False, True):
        if older:
            write(target, one="1")
        with pytest.raises(ZeroDivisionError):
            half(target)
        assert beside(target) == (["report"] if older else [])
    assert sorted(path.name for path in target.iterdir()) == [folder.MANIFEST, "one"]
