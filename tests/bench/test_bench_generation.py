"""Reading a prompt and writing behind it are proven: a memory that is not used, or not needed, is caught."""

from collections.abc import Callable
from typing import Any

import pytest

from ipexperf.bench import registry
from ipexperf.bench.cell import Cell
from ipexperf.bench.machine.facts import Facts
from ipexperf.bench.model import Examples, Model, Split
from ipexperf.bench.modes._generation import GenerationSession
from ipexperf.case import NetworkCase
from ipexperf.dtypes import DTYPES
from ipexperf.proof import accuracy

torch = pytest.importorskip("torch")

from bench_cases import FewTokens, failed, liar, named, with_weights, workbench

from ipexperf.zoo.models import _gpt

SIZE, BATCH = 8, 2
SHAPE = _gpt.Shape(layers=2, width=16, heads=2, positions=SIZE)


def gpt() -> Any:
    return with_weights(_gpt.Gpt(SHAPE))


def session(mode: str, build: Callable[[], Any] = gpt) -> GenerationSession:
    """A session of a small decoder, on stock PyTorch."""
    task = {"task": "language_modelling", "data": "few_tokens", "channels_last": False}
    model = Model("small", build, size=SIZE, batch_train=BATCH, batch_infer=BATCH, trained=False, **task)
    case = NetworkCase("small", "cpu", "fp32", mode, "stock", BATCH, SIZE, 1, "few_tokens")
    opened: Any = workbench(model, case, dataset=FewTokens())
    return opened.mode.open(opened)


class Again(_gpt.Gpt):  # type: ignore[misc]
    """Decodes by reading everything once more: the answers are right, and the work is another."""

    def forward(self, tokens: Any, kept: Any = None, begin: int = 0) -> Any:
        if kept is None:
            return super().forward(tokens)
        before = kept[0].keys
        seen = tokens if begin == 0 or before is None else torch.cat([before[:, :begin], tokens], 1)
        kept[0].keys = seen.clone()
        return super().forward(seen)[:, -tokens.shape[1] :]


class Forgetful(_gpt.Gpt):  # type: ignore[misc]
    """Keeps everything, and looks at nothing of it."""

    def forward(self, tokens: Any, kept: Any = None, begin: int = 0) -> Any:
        hidden = self.tokens(tokens) + self.positions.weight[begin : begin + tokens.shape[1]]
        for layer in self.layers:
            hidden = layer(hidden)
        return self.head(self.norm(hidden))


def made(kind: Any) -> Callable[[], Any]:
    return lambda: liar(kind(SHAPE), gpt())


@pytest.mark.parametrize(("mode", "tokens"), [("prefill", BATCH * SIZE), ("decode", BATCH)])
def test_a_step_reads_the_tokens_that_it_counts(mode: str, tokens: int) -> None:
    """All of a prompt, or one of each text; the proof holds, and the items are tokens."""
    opened = session(mode)
    checks = opened.proof()
    assert failed(checks) == set()
    assert opened.items(BATCH) == tokens
    assert named(checks, "tokens_read").found == f"{tokens} tokens in each of 9 linear layers"


def test_decoding_that_reads_everything_again_is_caught() -> None:
    """Its answers are right; its work is that of the whole text, and its memory holds no keys."""
    opened = session("decode", made(Again))
    assert all(check.ok for check in opened.accuracy()[1])
    checks = opened.proof()
    read = named(checks, "tokens_read")
    assert not read.ok
    assert int(read.found.split()[0]) > BATCH


@pytest.mark.parametrize("mode", ["prefill", "decode"])
def test_a_memory_that_is_not_used_is_caught(mode: str) -> None:
    """One token that sees itself alone is no token of the text, and what is forgotten makes no difference."""
    opened = session(mode, made(Forgetful))
    memory = named(opened.proof(), "memory")
    assert not memory.ok
    assert float(memory.found.split()[0]) > 0.01
    assert opened.accuracy()[1][0].ok == (mode == "prefill")


@pytest.mark.parametrize("mode", ["prefill", "decode"])
def test_only_a_network_that_foretells_tokens_can_write(mode: str) -> None:
    """An image classifier is left out with the reason, and so is a captured graph."""
    known, facts = registry.modes.get(mode), Facts("python", {})
    reason = known.why_not(Cell("resnet18", "cpu", "fp32", mode, "stock"), facts)
    assert reason == f"{mode} is for networks that predict the next token: resnet18 does not"
    assert known.why_not(Cell("gpt_small", "cpu", "fp32", mode, "stock"), facts) is None
    captured = Cell("gpt_small", "cpu", "fp32", mode, "ipex", (("graph_mode", "on"),))
    assert "captures one graph" in str(known.why_not(captured, facts))


def test_the_task_says_how_well_text_is_foretold() -> None:
    """All tokens alike: as many as there are; the right ones: one. The trivial answer is the most frequent token."""
    task = registry.tasks.get("language_modelling")
    targets = torch.tensor([[3, 3, 1, 3]])
    alike, right = torch.zeros(1, 4, 256), 100.0 * torch.nn.functional.one_hot(targets, 256).float()
    assert task.metrics((alike,), (targets,))["perplexity"] == pytest.approx(256)
    assert task.metrics((right,), (targets,))["perplexity"] == pytest.approx(1)
    assert (task.score((right,), (targets,)), task.agreement((alike,), (right,))) == (1, 0)
    learned, held_out = (Examples((tokens,), (tokens,)) for tokens in (targets, torch.tensor([[3, 2]])))
    assert task.trivial(Split(learned, held_out)) == 0.5
    metrics, _ = accuracy.fidelity((right,), accuracy.Reference((right,), 1.0), (targets,), DTYPES["fp32"].bounds, task)
    assert metrics["perplexity"] == pytest.approx(1)
