"""Serving a decoder: texts of different lengths share passes, and what is not served as labelled is caught."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ipexperf.bench import registry
from ipexperf.bench.api import Cell, Model
from ipexperf.bench.evidence import fingerprint
from ipexperf.bench.machine.facts import Facts
from ipexperf.bench.process import injections
from ipexperf.case import Case
from ipexperf.errors import WorkerError

torch = pytest.importorskip("torch")

from bench_cases import FewTokens, failed, liar, named, with_weights, workbench

from ipexperf.bench.modes import _engine, serve
from ipexperf.zoo.models import _decoder, _gpt, decoders

if TYPE_CHECKING:
    from collections.abc import Callable

    from ipexperf.bench.modes.serve import ServeSession

SIZE, BATCH = 16, 4
LLAMA = _decoder.Shape(layers=2, width=64, heads=4, key_heads=2, inner=128, vocabulary=256, positions=SIZE, theta=500.0)
GPT = _gpt.Shape(layers=2, width=16, heads=2, positions=SIZE)


@pytest.fixture(autouse=True)
def no_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """How late a sleeping process wakes up says how busy the machine is, and nothing of the code."""
    monkeypatch.setattr(_engine, "LATE", 60.0)


def llama() -> Any:
    return with_weights(_decoder.Decoder(LLAMA))


def gpt() -> Any:
    return with_weights(_gpt.Gpt(GPT))


def session(build: Callable[[], Any] = llama, dtype: str = "fp32", **knobs: str) -> ServeSession:
    """A session of a small decoder with random weights, on stock PyTorch, with requests that come quickly."""
    model = Model("small", build, **{**decoders.SHAPED, "size": SIZE, "held_out": 4})
    turned = tuple(sorted({"rate": "200", "requests": "6", **knobs}.items()))
    case = Case("small", "cpu", dtype, "serve", "stock", BATCH, SIZE, 1, "few_tokens", turned)
    opened: Any = workbench(model, case, dataset=FewTokens())
    return opened.mode.open(opened)


@pytest.mark.parametrize("build", [llama, gpt])
def test_serving_is_proven_and_true_to_float64(build: Callable[[], Any]) -> None:
    """Requests that join and leave get the outputs of the untouched network for their whole texts."""
    opened = session(build)
    opened.step()
    opened.replay()
    checks = opened.proof()
    assert [str(check) for check in checks if not check.ok] == []
    assert {"arrivals", "generated", "tokens_served", "batched", "tokens_read", "memory"} <= {x.name for x in checks}
    metrics, checks = opened.accuracy()
    assert [str(check) for check in checks if not check.ok] == []
    assert metrics["agreement"] == 1


@pytest.mark.parametrize(
    ("dtype", "knobs"),
    [
        ("bf16", {"weights": "autocast"}),
        ("fp32", {"weights": "int8"}),
        ("bf16", {"weights": "int4", "weight_group": "32"}),
    ],
)
def test_it_serves_with_weights_of_every_kind(dtype: str, knobs: dict[str, str]) -> None:
    opened = session(llama, dtype, **knobs)
    opened.replay()
    assert failed([*opened.proof(), *opened.accuracy()[1]]) == set()


def test_a_replay_has_the_times_of_each_request() -> None:
    """Samples are seconds a token from the arrival on; the replay lasts at least until the last one has come."""
    opened = session(llama, rate="20")
    reply = opened.replay()
    assert len(reply["samples"]) == len(reply["first_token"]) == len(reply["between_tokens"]) == 6
    assert reply["tokens"] == sum(request.tokens for request in opened.requests)
    assert reply["seconds"] >= opened.requests[-1].arrival
    assert opened.items(BATCH) == 1
    assert len(opened.replays) == 1
    opened.replay(at_once=True)
    assert len(opened.replays) == 1, "all at once is no replay of the load"


def test_the_load_is_named_beside_what_is_sustained() -> None:
    opened = session(llama, rate="0.001")
    assert not any("requests a second" in note for note in opened.notes())
    metrics = opened.metrics()
    assert metrics["offered_load"] == pytest.approx(opened.wanted / metrics["capacity"])
    assert any(note.startswith("0.001 requests a second wanted") for note in opened.notes())
    assert not any("could not sustain" in note for note in opened.notes())


def test_a_slow_down_that_is_injected_is_in_the_passes_of_a_replay() -> None:
    """Otherwise `ipexperf selftest` would ask the judge for a change that is not there."""
    opened = session(llama, rate="1e+06")
    calls = []
    opened.step = lambda: calls.append(serve.Rows.advance(opened.rows))  # type: ignore[method-assign]
    injections.slow(opened, lambda: None, "busy=0.1")
    opened.replay()
    assert len(calls) > 1


def test_two_looks_see_the_same_pass() -> None:
    """Also behind a replay, which leaves other texts in the rows."""
    opened = session()
    found = fingerprint.capture(opened.looks(opened.bench.device))
    assert found["unstable"] == []
    opened.replay()
    assert fingerprint.capture(opened.looks(opened.bench.device))["digest"] == found["digest"]


# Liars


class Again(_gpt.Gpt):  # type: ignore[misc]
    """Reads the whole text again for every token: the outputs are right, and the work is another."""

    def forward(self, tokens: Any, kept: Any = None, begin: Any = 0) -> Any:
        outputs = super().forward(tokens, kept, begin)
        if kept is not None and not isinstance(begin, int):
            for position in range(max(begin)):
                self.head(self.norm(self.tokens(tokens) + self.positions.weight[position]))
        return outputs


class Alone(_gpt.Gpt):  # type: ignore[misc]
    """Takes all texts at once, and decodes them one by one."""

    def forward(self, tokens: Any, kept: Any = None, begin: Any = 0) -> Any:
        if isinstance(begin, int):
            return super().forward(tokens, kept, begin)
        rows = [[memory.row(row) for memory in kept] for row in range(len(tokens))]
        parts = [super(Alone, self).forward(tokens[row : row + 1], rows[row], at) for row, at in enumerate(begin)]
        return torch.cat(parts)


class Forgetful(_gpt.Gpt):  # type: ignore[misc]
    """Fills the cache, and looks at nothing of it when it decodes."""

    def forward(self, tokens: Any, kept: Any = None, begin: Any = 0) -> Any:
        if isinstance(begin, int):
            return super().forward(tokens, kept, begin)
        hidden = self.tokens(tokens) + self.positions.weight[torch.tensor(begin)][:, None]
        for layer in self.layers:
            hidden = layer(hidden)
        return self.head(self.norm(hidden))


def made(kind: Any) -> Callable[[], Any]:
    return lambda: liar(kind(GPT), gpt())


def test_texts_that_are_read_again_are_caught() -> None:
    opened = session(made(Again))
    opened.replay()
    checks = opened.proof()
    assert not named(checks, "tokens_served").ok
    assert not named(checks, "tokens_read").ok


def test_requests_that_never_share_a_pass_are_caught() -> None:
    """All outputs are right, and as many tokens are read."""
    opened = session(made(Alone))
    opened.replay()
    checks = opened.proof()
    assert all(check.ok for check in opened.accuracy()[1])
    assert named(checks, "tokens_served").ok
    assert not named(checks, "batched").ok


def test_a_cache_that_decoding_ignores_is_caught() -> None:
    opened = session(made(Forgetful))
    opened.replay()
    assert not all(check.ok for check in opened.accuracy()[1])


# What cannot be served


def test_texts_that_are_too_short_are_refused() -> None:
    bench = session().bench.at(3)
    with pytest.raises(WorkerError, match="texts of 3 tokens are too short"):
        bench.mode.open(bench)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("2", None),
        ("0.25", None),
        ("0", "expected requests a second, a number above 0, got '0'"),
        ("inf", "expected requests a second, a number above 0, got 'inf'"),
        ("many", "expected requests a second, a number above 0, got 'many'"),
        ("2.0", "expected 2, got '2.0': the same load has one name"),
    ],
)
def test_a_rate_is_a_number_with_one_name(value: str, reason: str | None) -> None:
    assert serve.Rate().wrong(value) == reason


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        ("llama_135m", None),
        ("gpt_small", None),
        ("resnet18", "serve is for networks that predict the next token: resnet18 does not"),
        ("llama_1b.down", "serve is for whole networks: llama_1b.down is an operator of llama_1b"),
    ],
)
def test_only_whole_networks_that_generate_can_serve(model: str, reason: str | None) -> None:
    cell = Cell(model, "cpu", "fp32", "serve", "stock")
    assert registry.modes.get("serve").why_not(cell, Facts("python", {})) == reason
