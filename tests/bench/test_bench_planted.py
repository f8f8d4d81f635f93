"""A pickle that somebody planted in the cache, with its own checksum beside it: nothing of it is ever run."""

import contextlib
import io
import os
import pickle
import zipfile
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from ipexperf.bench.artifacts import pt2e, weights
from ipexperf.errors import WorkerError


class _Makes:
    """Pickled, it is a call of os.mkdir."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.mkdir, (str(self.path),)


def _unpickled(path: Path) -> bool:
    """Whether Python's own pickle would have run it: then these tests would have seen it."""
    pickle.loads(pickle.dumps(_Makes(path)))  # noqa: S301 - our own
    there = path.exists()
    path.rmdir()
    return there


def test_a_planted_checkpoint_is_refused(tmp_path: Path) -> None:
    assert _unpickled(tmp_path / "ran")
    made = tmp_path / "weights.pt"
    torch.save({"weight": _Makes(tmp_path / "ran")}, made)
    with pytest.raises(WorkerError, match=r"weights\.pt is truncated or holds something other than tensors: delete it"):
        weights.restore(str(made))
    made.write_bytes(pickle.dumps(_Makes(tmp_path / "ran"), protocol=2))  # without torch's archive around it
    with pytest.raises(WorkerError, match="something other than tensors"):
        weights.restore(str(made))
    assert not (tmp_path / "ran").exists()


@pytest.mark.filterwarnings("ignore")
def test_a_planted_program_is_refused_and_a_good_one_is_loaded(tmp_path: Path) -> None:
    """`torch.export.load` alone would run it: each pickle inside the archive is replaced, one at a time."""
    network = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
    example = (torch.ones(2, 4),)
    good = tmp_path / "good.pt2"
    torch.export.save(torch.export.export(network, example), good)
    assert torch.equal(pt2e.load(str(good), "cpu")(*example), network(*example))

    evil = io.BytesIO()
    torch.save({"weight": _Makes(tmp_path / "ran")}, evil)
    with zipfile.ZipFile(good) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    pickles = [name for name, data in members.items() if data[:2] == b"PK"]
    assert pickles
    ran = []
    for name in pickles:
        bad = tmp_path / "bad.pt2"
        with zipfile.ZipFile(bad, "w") as archive:
            for other, data in members.items():
                archive.writestr(other, evil.getvalue() if other == name else data)
        with pytest.raises(pickle.UnpicklingError):
            pt2e.load(str(bad), "cpu")
        assert not (tmp_path / "ran").exists()
        with contextlib.suppress(Exception):  # whether it complains afterwards is no matter
            torch.export.load(bad)
        ran.append((tmp_path / "ran").exists())
        if ran[-1]:
            (tmp_path / "ran").rmdir()
    assert any(ran), "torch refuses it by itself: our guard can go"
    assert pt2e.TENSORS_ONLY not in os.environ
