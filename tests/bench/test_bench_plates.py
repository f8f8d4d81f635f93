"""Plates: they are what their targets say, they are read as CTC means it, and a mistake in one character is one."""

import importlib.util
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ipexperf.bench import lazy, registry
from ipexperf.bench.devices.xpu import Xpu
from ipexperf.bench.model import Split
from ipexperf.errors import WorkerError
from ipexperf.zoo.datasets import plates
from ipexperf.zoo.tasks.plates import decoded

torch = pytest.importorskip("torch")

TASK = registry.tasks.get("plates")
STEPS = 18
needs_pillow = pytest.mark.skipif(importlib.util.find_spec("PIL") is None, reason="needs pillow")


def logits(steps: list[list[int]], classes: int = 37, sure: float = 20.0) -> Any:
    """What a network answers that says this at each step."""
    return sure * torch.nn.functional.one_hot(torch.tensor(steps), classes).permute(0, 2, 1).float()


def spelled(text: list[int], stays: list[int], steps: int = STEPS) -> list[int]:
    """A text as steps: a blank before each character, which stays for some steps; blanks to the end."""
    spoken = [step for number, times in zip(text, stays, strict=True) for step in [0, *[number] * times]]
    return spoken + [0] * (steps - len(spoken))


def answer(text: list[int]) -> Any:
    return logits([spelled(text, [1] * len(text))])


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 36), st.integers(1, 2)), max_size=6))
def test_a_text_is_decoded_however_long_its_characters_stay(text: list[tuple[int, int]]) -> None:
    """Repeats are one character, blanks none, and behind the text there are blanks."""
    numbers, stays = [number for number, _ in text], [times for _, times in text]
    (characters,) = decoded(logits([spelled(numbers, stays)])).tolist()
    assert characters == numbers + [0] * (STEPS - len(numbers))


@pytest.mark.parametrize(
    ("read", "right"),
    [
        ([3, 4, 5, 6, 7, 8, 9], 1.0),
        ([3, 4, 5, 6, 7, 8, 1], 0.0),
        ([3, 4, 5, 6, 7, 8], 0.0),
        ([3, 4, 5, 6, 7, 8, 9, 9], 0.0),
    ],
)
def test_a_plate_is_right_as_a_whole_or_not_at_all(read: list[int], right: float) -> None:
    """One character that is wrong, missing or too many: the plate is not read."""
    assert TASK.score((answer(read),), (torch.tensor([[3, 4, 5, 6, 7, 8, 9]]),)) == right


def test_the_loss_is_ctcs_mean() -> None:
    """As torch's own mean has it, small for a plate that is read, and large for any other."""
    torch.manual_seed(0)
    outputs, targets = torch.randn(3, 37, STEPS), torch.randint(1, 37, (3, 7))
    steps, lengths = outputs.log_softmax(1).permute(2, 0, 1), (torch.full((3,), STEPS), torch.full((3,), 7))
    expected = torch.nn.functional.ctc_loss(steps, targets, *lengths)
    assert float(TASK.loss((outputs,), (targets,))) == pytest.approx(float(expected), rel=1e-5)
    text = [3, 4, 5, 6, 7, 8, 9]
    assert float(TASK.loss((answer(text),), (torch.tensor([text]),))) < 1e-3
    assert float(TASK.loss((answer(text),), (torch.tensor([text[::-1]]),))) > 1


@pytest.mark.parametrize(("version", "around"), [("2.8.0+xpu", True), ("2.10.0+xpu", False)])
def test_a_loss_that_races_on_the_card_is_computed_on_the_host(
    version: str, *, around: bool, device: Xpu, card: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The network's gradients are right then, and lie on the card. A note says so."""
    ran: list[str] = []
    run = card.run
    monkeypatch.setattr(card, "run", lambda func, *rest: (ran.append(func.name()), run(func, *rest))[1])
    monkeypatch.setattr(lazy.torch, "__version__", version)
    plain, targets = torch.randn(3, 37, STEPS, requires_grad=True), torch.randint(1, 37, (3, 7))
    TASK.loss((plain,), (targets,)).backward()
    there = device.put(plain.detach()).requires_grad_()
    loss = TASK.loss((there,), (device.put(targets),))
    loss.backward()
    assert {loss.device.type, there.grad.device.type} == {"xpu"}
    torch.testing.assert_close(there.grad.cpu(), plain.grad)
    assert any("ctc_loss" in name for name in ran) != around
    assert [len(TASK.notes(device)) for device in ("xpu", "cpu")] == [around, 0]


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> Split:
    """A few plates of the right font."""
    for name, value in (("TRAIN", 48), ("TEST", 16), ("PART", 16)):
        monkeypatch.setattr(plates, name, value)
    path, why_not = plates.Plates().find(None)
    assert why_not is None
    return plates.Plates().read(str(path), 94)


@needs_pillow
def test_plates_have_the_format_and_the_size(few: Split) -> None:
    """Three letters and four digits, in three colours, 24 x 94, and no plate is held out that is trained on."""
    assert few.train.inputs[0].shape == (48, 3, 24, 94)
    assert few.test.inputs[0].shape == (16, 3, 24, 94)
    train, test = ({plates.text(row) for row in part.targets[0]} for part in (few.train, few.test))
    assert all(re.fullmatch("[A-Z]{3}[0-9]{4}", text) for text in train | test)
    assert (len(train), len(test), len(train & test)) == (48, 16, 0)
    values = few.train.inputs[0]
    assert -1 <= float(values.min()) < -0.2 < 0.2 < float(values.max()) <= 1


@needs_pillow
def test_what_stands_on_a_plate_is_what_its_target_says() -> None:
    """Each character is in its place, and no two of them look alike."""
    glyphs = plates._glyphs()
    assert len({glyph.numpy().tobytes() for glyph in glyphs}) == len(plates.CHARACTERS) == 36
    numbers = torch.tensor([[10, 11, 35, 0, 1, 8, 9]])
    assert plates.text(numbers[0] + 1) == "ABZ0189"
    (plate,) = plates._written(glyphs[numbers])[0]
    width = plates.CELL[0]
    starts = [plates.MARGIN + width * place + plates.GAP * (place >= plates.LETTERS) for place in range(7)]
    for start, number in zip(starts, numbers[0], strict=True):
        assert torch.equal(plate[:, start : start + width], glyphs[number])
    assert plate.shape == (2 * plates.HEIGHT, 2 * 94)


@needs_pillow
def test_another_font_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plates in another font are other plates: their font is known by its sum."""
    monkeypatch.setattr(plates, "SHA256", "0" * 64)
    with pytest.raises(WorkerError, match="the font of the Pillow installed is not the known one: sha256"):
        plates.Plates().read("", 94)


def test_lprnet_answers_for_each_plate_alone() -> None:
    """37 classes in 18 steps, whoever else is in the batch."""
    torch.manual_seed(0)
    network = registry.models.get("lprnet").build().eval()
    images = torch.randn(3, 3, 24, 94)
    with torch.no_grad():
        together, alone = network(images), network(images[1:2])
    assert together.shape == (3, 37, 18)
    torch.testing.assert_close(together[1:2], alone, rtol=1e-4, atol=1e-5)
