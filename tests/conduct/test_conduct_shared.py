"""The folder that the workers of a run share: one a run, gone when it ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from ipexperf.bench import loading
from ipexperf.case import Case
from ipexperf.conduct.conductor import Conductor
from ipexperf.plan.options import Options

pytestmark = pytest.mark.process

CASE = Case("tiny", "fake", "fp32", "spin", "plain", 1, 1, data="none")


def folder(conductor: Conductor) -> Path:
    return Path(conductor.ready(CASE).settings.shared or "")


def test_each_run_has_a_folder_of_its_own_until_it_ends(fake: str, tmp_path: Path) -> None:
    """Two concurrent runs share nothing, and closing twice does no harm."""
    loading.load((fake,))
    first, second = (Conductor(Options(load=(fake,)), tmp_path, lambda _: None) for _ in range(2))
    folders = [folder(first), folder(second)]
    assert folders[0] != folders[1]
    assert all(path.is_dir() for path in folders)
    (folders[0] / "float64.pt").write_text("a reference")
    first.close()
    first.close()
    assert [path.exists() for path in folders] == [False, True]
    second.close()
