"""Trained weights: made once, stored with their checksum, and never used if they do not match it."""

import hashlib
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conduct_play import StandIn

from ipexperf.bench import loading, registry
from ipexperf.case import NetworkCase
from ipexperf.conduct import artifact_cache
from ipexperf.conduct.conductor import Conductor
from ipexperf.errors import WorkerError
from ipexperf.plan.options import Options

LEARNER = NetworkCase("learner", "fake", "fp32", "spin", "plain", 1, 1, data="none")
MADE = b"weights " * 2**18
"""More than is read at a time."""


class Teacher(StandIn):
    """Stands where a worker would train: writes the same weights each time, or fails, and counts."""

    def __init__(self) -> None:
        self.asked = 0
        self.seconds = 0.0
        self.fails = False

    def ask(self, do: str, *, path: str, timeout: float, **_: Any) -> None:
        assert do == "weights"
        self.asked += 1
        self.seconds = timeout
        Path(path).write_bytes(MADE)
        time.sleep(0.2)  # so that a second run comes meanwhile
        if self.fails:
            raise WorkerError("error", "it did not learn")


@pytest.fixture
def teacher() -> Teacher:
    return Teacher()


@pytest.fixture
def ready(teacher: Teacher, fake: str, tmp_path: Path) -> Callable[..., Path]:
    """Where the weights of a fake case are, made by its teacher where they must be."""
    loading.load([fake])
    declaration = {"size": 1, "batch_train": 1, "batch_infer": 1, "data": "none", "needs": ()}
    registry.model("learner", **declaration)(lambda: int)

    def ready(say: Callable[[str], None] = lambda _: None) -> Path:
        # Without a lease, because only processes can share one: two threads would race for it.
        conductor = Conductor(Options(load=(fake,), lease="off"), tmp_path, say, start=teacher.start)
        path = conductor.ready(LEARNER).settings.weights
        assert path is not None
        return Path(path)

    return ready


@pytest.mark.process
def test_weights_are_made_once_and_stored_with_their_checksum(ready: Callable[..., Path], teacher: Teacher) -> None:
    """A second run finds them, prints nothing and trains nothing. `sha256sum` can check them."""
    said: list[str] = []
    path = ready(said.append)
    assert ready(said.append) == path
    assert (teacher.asked, said) == (1, [])
    assert path.read_bytes() == MADE
    assert artifact_cache.checksum_file(path).read_text() == f"{hashlib.sha256(MADE).hexdigest()}  {path.name}\n"
    subprocess.run(
        ["sha256sum", "--check", "--strict", artifact_cache.checksum_file(path).name], cwd=path.parent, check=True
    )
    assert sorted(x.name for x in path.parent.iterdir()) == sorted(
        [path.name, f"{path.name}.lock", f"{path.name}.sha256"]
    )


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lambda path: path.write_bytes(MADE[:-1]), "its SHA-256 is not the one in"),
        (lambda path: artifact_cache.checksum_file(path).unlink(), "is missing"),
    ],
)
def test_damaged_weights_are_reported_and_trained_again(
    damage: Callable[[Path], object], told: str, ready: Callable[..., Path], teacher: Teacher
) -> None:
    """In one line. Also if the checksum is missing."""
    damage(ready())
    said: list[str] = []
    path = ready(said.append)
    [line] = said
    assert line.startswith(f"{LEARNER.id}: {path.name} is not used, ")
    assert told in line
    assert line.endswith("the weights are trained again")
    assert teacher.asked == 2
    assert path.read_bytes() == MADE
    assert ready(said.append) == path
    assert (teacher.asked, len(said)) == (2, 1)


def test_two_concurrent_runs_train_weights_once(ready: Callable[..., Path], teacher: Teacher) -> None:
    """The second one waits, and finds what the first one made."""
    found: list[Path] = []
    runs = [threading.Thread(target=lambda: found.append(ready())) for _ in range(2)]
    for run in runs:
        run.start()
    for run in runs:
        run.join(timeout=30)
    assert teacher.asked == 1
    assert len(found) == 2
    assert found[0] == found[1]


def test_a_training_that_fails_leaves_nothing_behind(ready: Callable[..., Path], teacher: Teacher) -> None:
    """Neither partial weights nor a checksum without weights. Older files stay."""
    teacher.fails = True
    with pytest.raises(WorkerError, match="did not learn"):
        ready()
    teacher.fails = False
    path = ready()
    teacher.fails = True
    path.write_bytes(MADE[:-1])
    with pytest.raises(WorkerError, match="did not learn"):
        ready()
    assert path.read_bytes() == MADE[:-1]
    assert artifact_cache.flaw(path)
    assert not [x for x in path.parent.iterdir() if "part" in x.name]
