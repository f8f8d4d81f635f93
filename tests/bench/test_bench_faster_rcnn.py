"""The network of two stages answers what its task reads. Needs torch and torchvision; the weights are random."""

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from ipexperf.bench import registry
from ipexperf.bench.model import tensors

torch = pytest.importorskip("torch")
pytest.importorskip("torchvision")

from ipexperf.zoo.models import faster_rcnn

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning:torchvision"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:torch"),
]

BOXES = torch.tensor([[[5.0, 5, 25, 25], [32, 32, 60, 54]], [[3, 32, 23, 60], [0, 0, 0, 0]]])
LABELS = torch.tensor([[0, 1], [1, -1]])
"""Three things in two scenes."""
NORMS = 15
"""So many has a ResNet-18 without its last stage."""


@pytest.fixture
def images() -> Any:
    return torch.rand(2, 3, faster_rcnn.SIZE, faster_rcnn.SIZE, generator=torch.Generator().manual_seed(0))


@pytest.fixture(scope="module")
def two_stages() -> Any:
    torch.manual_seed(0)
    return faster_rcnn.faster_rcnn()


def test_two_stages_answer_with_as_many_boxes_for_each_image(two_stages: Any, images: Any) -> None:
    """What was not found has the label -1, and stands last."""
    with torch.no_grad():
        boxes, scores, labels = tensors(two_stages.eval()(images.contiguous(memory_format=torch.channels_last)))
    most = faster_rcnn.MOST_BOXES
    assert (boxes.shape, scores.shape, labels.shape) == ((2, most, 4), (2, most), (2, most))
    assert torch.equal(scores > 0, labels >= 0)
    assert bool((scores.diff(dim=1) <= 0).all())
    assert int(labels.max()) < faster_rcnn.CLASSES - 1


@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning")
def test_two_stages_can_be_traced_in_bf16(images: Any) -> None:
    """What it starts its boxes from stays in fp32: torchvision's own is in bf16 when a trace is made again to see."""
    torch.manual_seed(0)
    fresh = faster_rcnn.faster_rcnn().eval()
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, cache_enabled=False):
        script = torch.jit.trace(fresh, images)
        assert script(images)[0].shape == (2, faster_rcnn.MOST_BOXES, 4)
    assert {anchor.dtype for anchor in fresh.rpn.anchor_generator.cell_anchors} == {torch.float32}


def test_what_was_found_is_filled_up() -> None:
    """One box, and all the others are none."""
    boxes, scores, labels = faster_rcnn._filled(BOXES[0, :1], torch.tensor([0.9]), torch.tensor([2]))
    assert (boxes.shape, scores.shape) == ((faster_rcnn.MOST_BOXES, 4), (faster_rcnn.MOST_BOXES,))
    assert labels.tolist() == [2] + [-1] * (faster_rcnn.MOST_BOXES - 1)
    task: Any = registry.tasks.get("region_detection")
    [detected] = task.detections((boxes[None], scores[None], labels[None]))
    assert (detected.boxes.tolist(), detected.labels.tolist()) == ([BOXES[0, 0].tolist()], [2])


def test_two_stages_make_their_own_loss(two_stages: Any, images: Any) -> None:
    """Four of them, together one number that every trained weight has a part in."""
    task = registry.tasks.get("region_detection")
    loss, losses = task.learn(two_stages.train(), (images,), (BOXES, LABELS))
    assert len(losses) == 4
    assert float(loss.detach()) == pytest.approx(sum(float(value.detach()) for value in losses))
    loss.backward()
    assert all(value.grad is not None for value in two_stages.parameters())


def test_how_sure_two_stages_are_is_compared_and_what_they_decide(two_stages: Any) -> None:
    """A box that moved, or that says something else, is another decision; a surer one is a distance."""
    task = registry.tasks.get("region_detection")
    scores = torch.where(LABELS >= 0, 0.9, 0.0)
    known = (BOXES, scores, LABELS)
    assert task.score(known, (BOXES, LABELS)) == task.agreement(known, known) == 1.0
    assert task.agreement((BOXES + 30, scores, LABELS), known) < 0.5
    assert task.score((BOXES, scores, torch.where(LABELS >= 0, 1 - LABELS, LABELS)), (BOXES, LABELS)) == 0.0
    assert float((task.compared((BOXES, scores / 2, LABELS)) - task.compared(known)).abs().max()) > 0.4
    assert task.agreement((BOXES, scores / 2, LABELS), known) == 0.0


def test_norms_learn_in_a_twin_and_are_frozen_as_they_then_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Statistics and weights alike: a network that only got the weights would answer otherwise."""

    def learn(bench: Any, split: Any, twin: Any) -> None:
        assert twin.training
        assert sum(type(module).__name__ == "BatchNorm2d" for module in twin.modules()) == NORMS
        for value in twin.state_dict().values():
            value.fill_(7)

    monkeypatch.setattr(faster_rcnn.weights, "steps", learn)
    network = faster_rcnn.faster_rcnn()
    bench: Any = SimpleNamespace(device=SimpleNamespace(put=lambda value: value))
    split: Any = None
    faster_rcnn.learned_norms(bench, split, network)
    assert all(bool((value == 7).all()) for value in network.state_dict().values())
    assert not any(type(module).__name__ == "BatchNorm2d" for module in network.modules())


class _Norm(torch.nn.Module):  # type: ignore[misc, name-defined, unused-ignore] # torch has no types here
    """IPEX's frozen norm, as far as its state goes."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.eps = eps
        for name in ("weight", "bias", "running_mean", "running_var"):
            self.register_buffer(name, torch.zeros(width))


def test_all_frozen_norms_are_replaced_with_their_state(monkeypatch: pytest.MonkeyPatch) -> None:
    """None is left, each has what the one before it had, and the weights load as before."""
    ipex = ModuleType("intel_extension_for_pytorch")
    ipex.nn = SimpleNamespace(modules=SimpleNamespace(FrozenBatchNorm2d=_Norm))  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, ipex.__name__, ipex)
    network = faster_rcnn.faster_rcnn()
    before = {name: value.clone() for name, value in network.state_dict().items()}
    tuned = faster_rcnn._for_ipex(network)
    kinds = [type(module).__name__ for module in tuned.modules()]
    assert "FrozenBatchNorm2d" not in kinds
    assert kinds.count("_Norm") == NORMS
    parts = torch.zeros(3, 25).split([5, 20], dim=1)
    tuned.roi_heads.box_predictor.forward = lambda _: parts
    scores, deltas = tuned.roi_heads.box_predictor(None)
    assert not parts[0].is_contiguous()
    assert scores.is_contiguous(), "its softmax takes no part of another tensor"
    assert deltas is parts[1]
    after = tuned.state_dict()
    assert after.keys() == before.keys()
    assert all(torch.equal(after[name], value) for name, value in before.items())
