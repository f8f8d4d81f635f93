"""How detection is judged and learned, on boxes that are known. Needs torch."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipexperf.bench import registry
from ipexperf.bench.model import tensors

torch = pytest.importorskip("torch")

from ipexperf.zoo.models import ssd
from ipexperf.zoo.tasks import _boxes, detection
from ipexperf.zoo.tasks._boxes import Detections

TASK: Any = registry.tasks.get("detection")
CLASSES = 3
BOXES = torch.tensor([[[5.0, 5, 25, 25], [32, 32, 60, 54]], [[3, 32, 23, 60], [0, 0, 0, 0]]])
LABELS = torch.tensor([[0, 1], [1, -1]])
"""Three things in two scenes."""


def found(boxes: Any, labels: Any, scores: Any = None) -> Detections:
    kept = labels >= 0
    scores = torch.ones(len(labels)) if scores is None else scores
    return Detections(boxes[kept], scores[kept], labels[kept])


def right() -> list[Detections]:
    return [found(boxes, labels) for boxes, labels in zip(BOXES, LABELS, strict=True)]


def answered(sure: float = 8.0) -> tuple[Any, Any]:
    """What a network answers that is right everywhere."""
    offsets, classes = detection.assigned(detection.anchors(detection.SIZE), BOXES, LABELS)
    return offsets, torch.nn.functional.one_hot(classes, CLASSES) * sure


box = st.tuples(*[st.floats(0, 40), st.floats(0, 40), st.floats(1, 50), st.floats(1, 50)]).map(
    lambda x: [x[0], x[1], x[0] + x[2], x[1] + x[3]]
)


def test_the_overlap_of_two_boxes_is_what_they_share_of_what_they_cover() -> None:
    """Half of each of two squares that are shifted by half a side is a third of both."""
    shares = _boxes.overlap(torch.tensor([[0.0, 0, 2, 2]]), torch.tensor([[1.0, 0, 3, 2], [2, 2, 4, 4]]))
    assert shares.tolist() == [[pytest.approx(1 / 3), 0.0]]


@given(st.lists(box, max_size=12), st.integers(0, 9))
def test_boxes_around_the_same_thing_are_left_out_as_torchvision_does(boxes: list[list[float]], seed: int) -> None:
    """The surest first."""
    ops = pytest.importorskip("torchvision").ops
    places = torch.tensor(boxes).view(-1, 4)
    scores = torch.rand(len(boxes), generator=torch.Generator().manual_seed(seed))
    kept = _boxes.suppressed(places, scores, torch.ones(len(boxes)), detection.CROWDED)
    assert kept.tolist() == ops.nms(places, scores, detection.CROWDED).tolist()


@pytest.mark.parametrize(
    ("boxes", "labels"),
    [(BOXES + 20, LABELS), (BOXES, torch.where(LABELS >= 0, 1 - LABELS, LABELS)), (BOXES, LABELS * 0 - 1)],
    ids=["elsewhere", "another label", "nothing"],
)
def test_what_is_found_wrongly_is_not_precise_at_all(boxes: Any, labels: Any) -> None:
    """A box that lies elsewhere or says something else has found nothing; the right ones are wholly precise."""
    assert _boxes.mean_precision(right(), BOXES, LABELS) == 1.0
    wrong = [found(*parts) for parts in zip(boxes, labels, strict=True)]
    assert _boxes.mean_precision(wrong, BOXES, LABELS) == 0.0


def test_a_thing_that_is_missed_and_one_that_is_found_twice_cost() -> None:
    """Of two things of a class one is found: half. A second box around the same thing, and surer than another's."""
    missed = [right()[0], found(BOXES[1], LABELS[1] * 0 - 1)]
    assert _boxes.mean_precision(missed, BOXES, LABELS) == pytest.approx((1 + 1 / 2) / 2)
    twice = Detections(BOXES[0][[1, 1]], torch.tensor([0.9, 0.8]), torch.tensor([1, 1]))
    last = Detections(BOXES[1][:1], torch.tensor([0.7]), torch.tensor([1]))
    assert _boxes.mean_precision([twice, last], BOXES, LABELS) == pytest.approx((0 + (1 + 2 / 3) / 2) / 2)


def test_agreement_is_asked_of_both_sides() -> None:
    """A box that only one side has, or that says something else, is no agreement; two times nothing is one."""
    assert _boxes.agreement(right(), right()) == 1.0
    fewer = [right()[0], found(BOXES[1], LABELS[1] * 0 - 1)]
    assert _boxes.agreement(fewer, right()) == _boxes.agreement(right(), fewer) == pytest.approx(4 / 5)
    renamed = [Detections(detected.boxes, detected.scores, 1 - detected.labels) for detected in right()]
    assert _boxes.agreement(renamed, right()) == 0.0
    assert _boxes.agreement([fewer[1]], [fewer[1]]) == 1.0


@given(st.lists(box, min_size=1, max_size=3))
def test_offsets_lead_back_to_the_boxes_that_they_were_made_of(boxes: list[list[float]]) -> None:
    """Encoded and decoded, a box is where it was."""
    known = detection.anchors(detection.SIZE)[: len(boxes)]
    assert torch.allclose(detection.decoded(detection.encoded(torch.tensor(boxes), known), known),
                          torch.tensor(boxes), atol=1e-2)  # fmt: skip


def test_each_thing_is_for_one_known_box_at_least_and_no_thing_for_none() -> None:
    """Even a thing that no known box overlaps by half is to be found; a label of -1 is no thing."""
    tiny = torch.tensor([[[50.0, 50, 52, 52], [0, 0, 0, 0]]])
    _, classes = detection.assigned(detection.anchors(detection.SIZE), tiny, torch.tensor([[1, -1]]))
    assert sorted(set(classes.flatten().tolist())) == [0, 2]
    assert int((classes > 0).sum()) == 1
    _, none = detection.assigned(detection.anchors(detection.SIZE), tiny, torch.tensor([[-1, -1]]))
    assert int(none.sum()) == 0


def test_the_loss_is_small_for_what_is_right_and_larger_for_each_thing_that_is_wrong() -> None:
    """A class, an offset, and a box around nothing that says it was sure: each makes it larger."""
    targets = (BOXES, LABELS)
    offsets, scores = answered(12.0)
    least = float(TASK.loss((offsets, scores), targets))
    assert least < 0.01
    swapped = scores[..., [0, 2, 1]]
    assert float(TASK.loss((offsets, swapped), targets)) > 1
    assert float(TASK.loss((offsets + 1, scores), targets)) > 1
    loud = scores.clone()
    nothing = (scores[0].argmax(1) == 0).nonzero()[0]
    loud[0, nothing] = torch.tensor([0.0, 12.0, 0.0])
    assert float(TASK.loss((offsets, loud), targets)) > least + 1
    assert float(TASK.loss(answered(), (BOXES, LABELS * 0 - 1))) == 0.0, "nothing to divide by"


def test_right_answers_are_decided_to_be_right() -> None:
    """Out of hundreds of boxes comes each thing once, surest first."""
    outputs = answered()
    assert TASK.score(outputs, (BOXES, LABELS)) == 1.0
    assert [len(detected.boxes) for detected in TASK.detections(outputs)] == [2, 1]
    assert TASK.agreement(outputs, outputs) == 1.0


def test_a_class_that_is_lost_and_offsets_that_drift_are_caught() -> None:
    """By the decisions and by the score: one class for everything, or boxes that lie elsewhere."""
    offsets, scores = answered()
    same = torch.cat([scores[..., :1], scores[..., 1:].sum(2, keepdim=True), scores[..., 2:] * 0], 2)
    assert TASK.agreement((offsets, same), (offsets, scores)) == pytest.approx(1 / 3)
    assert TASK.score((offsets, same), (BOXES, LABELS)) < 0.6
    drifted = (offsets + 8, scores)
    assert TASK.agreement(drifted, (offsets, scores)) < 0.5
    assert TASK.score(drifted, (BOXES, LABELS)) < 0.5


@pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")
@pytest.mark.filterwarnings("ignore::DeprecationWarning:torchvision")
def test_the_network_answers_for_each_known_box() -> None:
    """Offsets and scores, a row for each: the maps are as large as the task believes."""
    pytest.importorskip("torchvision")
    outputs = tensors(ssd.ssd_resnet34()(torch.rand(2, 3, detection.SIZE, detection.SIZE)))
    known = len(detection.anchors(detection.SIZE))
    assert [tuple(value.shape) for value in outputs] == [(2, known, 4), (2, known, ssd.CLASSES)]
    assert float(TASK.loss(outputs, (BOXES, LABELS)).detach()) > 0
    assert len(TASK.detections(tuple(value.detach().double() for value in outputs))) == 2


def test_the_rows_of_a_map_stand_in_the_order_of_the_known_boxes() -> None:
    """Row by row, point by point, and at each point one box after the other."""
    value = torch.arange(2 * 3 * 3).reshape(3, 3, 2).permute(2, 0, 1)[None]
    assert ssd._rows(value, 1).flatten().tolist() == list(range(18))
