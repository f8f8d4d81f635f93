"""Training of a user's own network: its loss and targets in its file, its proof, and what is wrong with one."""

import re
from pathlib import Path
from typing import Any

import pytest
from bench_cases import failed, of_target

from ipexperf.bench import registry, user_files
from ipexperf.bench.api import TRAINING, Workbench
from ipexperf.bench.cell import Settings
from ipexperf.bench.networks import own, own_target
from ipexperf.errors import UsageError, WorkerError
from ipexperf.proof import fingerprint

torch = pytest.importorskip("torch")

from ipexperf.bench.artifacts import footprint, weights

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:torch")  # the profiler's, where a part of a driver is

NETS = Path(__file__).parents[1] / "fakes" / "mytraining.py"


def bench(name: str, mode: str = "train", settings: Settings | None = None, batch: int = 32) -> Workbench:
    """A case of one of the stranger's networks."""
    return of_target(f"{NETS}:{name}", mode, batch, settings or Settings(train_steps=40))


def opened(name: str, **settings: Any) -> Any:
    """The session of a training, after a worker has sampled it."""
    workbench = bench(name, settings=Settings(train_steps=40, **settings))
    session = workbench.mode.open(workbench)
    session.sample(lambda: None, 2, 2)
    return session


@pytest.mark.parametrize("name", ["learner", "quick", "mapped"])
def test_a_network_with_a_loss_and_targets_is_trained_and_proven(name: str, tmp_path: Path) -> None:
    """Every check of a shipped training, but for that of right answers, which nobody knows."""
    session = opened(name, checkpoint=str(tmp_path / "kept.pt"))
    proof = session.proof()
    metrics, checks = session.accuracy()
    assert failed([*proof, *checks]) == set()
    assert {"weights_move", "steps", "input"} <= {check.name for check in proof}
    assert [check.name for check in checks] == ["loss", "checkpoint", "loss_curve"]
    assert set(metrics) == {"loss", "first_loss"}
    assert fingerprint.of(session, session.bench.device)["digest"]


def test_a_checkpoint_of_another_network_is_seen_without_right_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is loaded answers like what was trained, or the check fails."""
    session = opened("learner", checkpoint=str(tmp_path / "kept.pt"))

    def spoilt(path: str) -> Any:
        state = torch.load(path, weights_only=True)
        return {"model": {name: value * 2 for name, value in state["model"].items()}}

    monkeypatch.setattr(weights, "restore", spoilt)
    assert failed(session.accuracy()[1]) == {"checkpoint"}


def test_a_part_that_the_user_froze_need_not_move() -> None:
    """Weights without a gradient are not trained, and all others are."""
    session = opened("frozen")
    checks = {check.name: check for check in session.proof()}
    assert (checks["weights_move"].found, checks["weights_move"].ok) == ("2 of 2 parameters", True)


@pytest.mark.parametrize(("name", "optimizer", "rate"), [("learner", "adam", 1e-3), ("quick", "sgd", 0.05)])
def test_its_optimizer_is_that_of_its_file(name: str, optimizer: str, rate: float) -> None:
    """Or the usual one where the file has none."""
    session = opened(name)
    assert type(session.optimizer).__name__.lower() == optimizer
    assert session.optimizer.param_groups[0]["lr"] == rate


def test_inference_has_the_inputs_of_its_training() -> None:
    """One function makes the examples of both: nobody writes it twice."""
    workbench = bench("learner", "infer", batch=16)
    session = workbench.mode.open(workbench)
    metrics, checks = session.accuracy()
    assert failed([*session.proof(), *checks]) == set()
    assert set(metrics) == {"agreement", "fidelity"}
    split = weights.read(workbench)
    assert (len(split.train), len(split.test)) == (own.TRAINED, own.HELD_OUT)


def test_what_its_training_takes_of_memory_is_known() -> None:
    """Its loss on two examples keeps what a gradient needs."""
    assert footprint.measure(bench("learner")).kept > 0


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        (
            "misfit",
            "mytraining.misfit: its training_loss does not take answers of 32x10 float32 and targets of 32x7 float32: ",
        ),
        (
            "broad",
            "does not take answers of 32x10 float32 and targets of 32x1 float32: UserWarning: Using a target size",
        ),
        ("unreduced", "its training_loss returned a tensor of shape (32,) for answers of 32x10 float32"),
        ("detached", "its training_loss does not depend on any weight of the network that is trained"),
        ("worded", "its training_loss is a str: expected a function of answers and targets"),
        ("ragged", "its training_batch() returned (a tensor of shape (16, 3, 8, 8), a tensor of shape (8,)): expected"),
        ("lone", "its training_batch() returned a tensor of shape (16, 3, 8, 8): expected inputs and targets"),
        ("bare", "mytraining.bare has no parameters: a stack has nothing to optimise and training has nothing to"),
    ],
)
def test_what_cannot_be_learned_from_is_one_sentence(name: str, reason: str) -> None:
    """Each with what was found, before anything is timed, and no traceback of torch's."""
    workbench = bench(name)
    with pytest.raises(WorkerError, match=re.escape(reason)) as error:
        workbench.mode.open(workbench).step()
    assert error.value.outcome == "error"


def test_memory_that_is_full_in_a_loss_is_no_fault_of_its_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The launch ends as out of memory, which the worker reads from torch's own error."""

    def full(*_: Any) -> Any:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory")

    workbench = bench("learner")
    monkeypatch.setattr(user_files.load_file(NETS), "training_loss", full)
    workbench.task._loss = None  # type: ignore[attr-defined] # another test may have found the real one
    with pytest.raises(RuntimeError, match="allocate memory"):
        workbench.mode.open(workbench).step()


def write(folder: Path, text: str) -> str:
    path = folder / "nets.py"
    path.write_text(text)
    return f"{path}:net"


BOTH = "from torch.nn.functional import mse_loss as training_loss\n\n\ndef training_batch():\n    return 1 / 0\n"


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("def net():\n    pass\n", "training_batch() and training_loss(answers, targets)"),
        ("def training_batch():\n    pass\n", "training_loss(answers, targets)"),
        ("net_training_loss: object = print\n", "training_batch()"),
        ("def other_training_batch():\n    pass\n", "training_batch() and training_loss(answers, targets)"),
        ("def broken(:\n", "training_batch() and training_loss(answers, targets)"),
    ],
)
def test_what_is_missing_is_named_with_the_page_that_says_how(text: str, missing: str, tmp_path: Path) -> None:
    """Nothing of the file is run for that: the plan need not have what it imports."""
    model = registry.models.get(own.register(write(tmp_path, text)))
    reason = f"its loss and targets are not known: write {missing} into its file"
    assert model.why_nots[TRAINING] == reason
    assert model.task == "own"


@pytest.mark.parametrize(
    "text", [BOTH, BOTH.replace("training_", "net_training_"), BOTH + "training_optimizer: str = 'lamb'\n"]
)
def test_a_file_with_both_is_trained(text: str, tmp_path: Path) -> None:
    """For all of its callables or one alone, however it is written: nothing is run to see it."""
    model = registry.models.get(own.register(write(tmp_path, text)))
    assert dict(model.why_nots) == {}
    assert model.task == model.name == "nets.net"


def test_random_numbers_and_hubs_teach_nothing(tmp_path: Path) -> None:
    """A shape behind the name makes random inputs, which no targets belong to."""
    text = write(tmp_path, BOTH)
    model = registry.models.get(own.register(f"{text}@3x8x8"))
    reason = "its loss and targets are not known: name a callable of a file that has training_batch() and training_loss"
    assert model.why_nots[TRAINING].startswith(reason)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("training_optimizer = 'adm'", "training_optimizer must be one of sgd, adagrad, adam, adamw, lamb, as text in"),
        ("training_optimizer = ['adam']", "as text in quotes, got ['adam']"),
        ("training_optimizer = make()", "training_optimizer must be one of sgd"),
        ("def training_optimizer(): ...", "training_optimizer must be one of sgd"),
        ("training_rate = '1e-3'", "training_rate must be a number over 0, such as 1e-3, got '1e-3'"),
        ("net_training_rate = 0", "training_rate must be a number over 0, such as 1e-3, got 0"),
        ("training_rate = True", "training_rate must be a number over 0, such as 1e-3, got True"),
    ],
)
def test_an_optimizer_that_cannot_be_is_refused_by_the_plan(line: str, reason: str, tmp_path: Path) -> None:
    """One sentence, before anything is started."""
    with pytest.raises(UsageError, match=re.escape(reason)):
        own_target.declared("nets:net", "net", Path(write(tmp_path, f"{BOTH}{line}\n").rpartition(":")[0]))
