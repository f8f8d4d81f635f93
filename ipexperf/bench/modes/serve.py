"""Serving: requests that come at random moments at a stated rate, with continuous batching.

The rate is in requests a second, and the moments, prompts and lengths are planned in advance: whatever is compared
gets the same requests at the same moments. A step is a token: the seconds from a request's planned arrival to its last
token, over its number of tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ipexperf.bench import measure, registry
from ipexperf.bench.api import Device, Look, Model, Number, Session, Tensors, Workbench
from ipexperf.bench.clocks import perf_counter
from ipexperf.bench.evidence import fingerprint
from ipexperf.bench.lazy import torch
from ipexperf.bench.modes import _engine, _generation
from ipexperf.bench.modes._engine import Request, Served
from ipexperf.bench.modes._generation import GenerationMode, GenerationSession
from ipexperf.errors import WorkerError
from ipexperf.result import Check

SMALLEST = 2 * _engine.FEWEST
"""Smallest size of a case: half of it must hold the shortest prompt, and the other half the fewest tokens."""


@dataclass(frozen=True)
class Rate(Number):
    """The knob for the load. Shares of what the software can sustain would be another load for each version of it."""

    name: str = "rate"
    help: str = "requests a second that arrive, whatever the software can sustain (default: the model's)"
    values: tuple[str, ...] = ()

    def default(self, model: Model, beside: Mapping[str, str]) -> str:
        del beside
        return f"{model.rate:g}"

    def wrong(self, value: str) -> str | None:
        try:
            number = float(value)
        except ValueError:
            number = 0.0
        if not 0 < number < float("inf"):
            return f"expected requests a second, a number above 0, got '{value}'"
        return None if value == f"{number:g}" else f"expected {number:g}, got '{value}': the same load has one name"


class Rows:
    """Rows of a key-value cache, each with the text of one request. An engine reads and decodes with it.

    The tokens that it reads are those of the texts, not the predicted ones, so that all software does the same work.
    """

    def __init__(self, read: Callable[..., Any], texts: Any, memory: list[Any]) -> None:
        self._read, self._texts, self._memory = read, texts, memory
        self.running: list[tuple[int, int]] = []
        """The text of each row, and the position of its next token."""
        self.step: Callable[[], Any] = self.advance
        self.outputs: dict[int, list[Any]] | None = None
        """The network's outputs for each text, if they are wanted."""

    def read(self, request: Request, row: int) -> None:
        text = request.text % len(self._texts)
        tokens = self._texts[text : text + 1, : request.prompt]
        logits = self._read(tokens, [cache.row(row) for cache in self._memory])
        self._keep(request, logits)
        logits[:, -1].argmax(-1).tolist()  # a server knows its token here

    def decode(self, running: Sequence[Served]) -> None:
        self.running = [(served.request.text % len(self._texts), served.cached) for served in running]
        self.step()
        for row, served in enumerate(running):
            self._keep(served.request, self.logits[row : row + 1])
        self.chosen.tolist()

    def move(self, source: int, target: int, tokens: int) -> None:
        for cache in self._memory:
            cache.move(source, target, tokens)

    def advance(self) -> None:
        """Decode one token of each running text."""
        texts, places = (list(numbers) for numbers in zip(*self.running, strict=True))
        self.logits = self._read(self._texts[texts, places][:, None], self._memory, places)
        self.chosen = self.logits[:, -1].argmax(-1)

    def _keep(self, request: Request, logits: Any) -> None:
        if self.outputs is not None:
            self.outputs.setdefault(request.text, []).append(logits)


class ServeSession(GenerationSession):
    """Serves the planned requests. Apart from that, a step decodes one token of as many texts as can run together."""

    def __init__(self, bench: Workbench) -> None:
        if bench.case.size < SMALLEST:
            text = f"texts of {bench.case.size} tokens are too short for a prompt and an answer"
            raise WorkerError("error", f"{text}: say --perf-size {SMALLEST} or more")
        super().__init__(bench)
        size, batch = bench.case.size, bench.case.batch
        self.rate = float(bench.knob("rate"))
        self.requests = _engine.planned(int(bench.knob("requests")), self.rate, size, bench.settings.seed)
        self.replays: list[list[Served]] = []
        self.capacity = 0.0
        """Tokens a second with all requests at once: the best so far, because other work can only lower it."""
        (texts,) = bench.put(self.held_out.inputs)
        self.rows = Rows(self.read, texts, self.memories[0])
        self.resting = [(row % len(texts), size // 2 + row % (size - size // 2)) for row in range(batch)]
        self.rows.running = self.resting
        self.rows.step = lambda: self.step()  # noqa: PLW0108 - a slow-down may be injected into it later

    @property
    def tokens(self) -> int:
        return self.bench.case.batch

    def items(self, batch: int) -> int:
        """Return 1: times are those of a token."""
        del batch
        return 1

    def build(self, network: Any, example: Tensors) -> Any:
        """Build with one token of each text as the example, because weights are packed for the shape in use."""
        return super().build(network, (example[0][:, :1],))

    def caches(self) -> list[Any]:
        return [self.cache(self.bench.case.batch)]

    def cache(self, rows: int) -> list[Any]:
        """Return a key-value cache with as many rows."""
        memory: list[Any] = self.network.memory()
        self.read(self.inputs[0][0][:1, :1].expand(rows, 1), memory)
        return memory

    def step(self) -> None:
        self.rows.advance()

    def replay(self, *, at_once: bool = False) -> dict[str, Any]:
        """Serve all requests once, from their planned moments on or all at once. Return their times."""
        plan = [replace(request, arrival=0.0) for request in self.requests] if at_once else self.requests
        before, begin = measure.threads.look(), perf_counter()
        answers = _engine.serve(plan, self.bench.case.batch, self.rows)
        seconds = perf_counter() - begin
        cpu, delay = measure.threads.sampled(before, measure.threads.look(), seconds)
        self.rows.running = self.resting
        tokens = sum(len(answer.moments) for answer in answers)
        if at_once:
            self.capacity = max(self.capacity, tokens / seconds)
        else:
            self.replays.append(answers)
        return {
            # Requests overlap: a share of run delay is that of the replay, and CPU time that of a token.
            "samples": [(answer.per_token, cpu / tokens, answer.per_token * delay / seconds) for answer in answers],
            "first_token": [answer.first_token for answer in answers],
            "between_tokens": [answer.between_tokens for answer in answers],
            "tokens": tokens,
            "seconds": seconds,
        }

    def forward(self, inputs: Tensors) -> Any:
        """Return the outputs for whole texts, served with prompts of different lengths and half as many rows."""
        (texts,) = inputs
        count, size = texts.shape
        prompts = [size // 4 + text % (size // 2) + 1 for text in range(count)]
        requests = [Request(text, 0.0, prompt, size - prompt + 1) for text, prompt in enumerate(prompts)]
        rows = (count + 1) // 2
        network = Rows(self.read, texts, self.cache(rows))
        network.outputs = {}
        _engine.serve(requests, rows, network)
        return torch.cat([torch.cat(network.outputs[text], 1) for text in range(count)])

    def metrics(self) -> dict[str, float]:
        """Return the tokens a second that the software sustains, and which share of them the load wants."""
        self.replay(at_once=True)
        return {**super().metrics(), "capacity": self.capacity, "offered_load": self.wanted / self.capacity}

    @property
    def wanted(self) -> float:
        """Tokens a second that the requests want."""
        return sum(request.tokens for request in self.requests) / len(self.requests) * self.rate

    def notes(self) -> list[str]:
        return [*super().notes(), *_engine.load_noted(self.rate, self.wanted, self.capacity)]

    def proof(self) -> list[Check]:
        rows, plan = self.bench.case.batch, self.requests
        read = _generation.tokens_by_layer(self.network, lambda: self.replay(at_once=True))
        return [
            *super().proof(),
            _engine.arrivals(self.replays, plan, self.rate),
            _engine.generated(self.replays, plan),
            _engine.tokens_served(read, plan),
            _engine.batched(read, plan, rows),
        ]

    def looks(self, device: Device) -> Mapping[str, Look]:
        """Look at a pass in which as many texts decode as can run together. Its share of the roof says little here."""
        return fingerprint.of_step(self.step, device)


class Serve(GenerationMode):
    name = "serve"
    family = "serve"
    kind = "serving requests"
    whole = True
    open_loop = True
    requests = True
    usual_batch = 8
    knobs = (
        *_generation.KNOBS,
        Rate(),
        Number("requests", "requests of a replay, which come at the same moments each time", ("16",)),
    )

    def open(self, bench: Workbench) -> Session:
        return ServeSession(bench)


registry.modes.add("serve", Serve())
