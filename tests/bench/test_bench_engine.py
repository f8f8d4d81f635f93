"""Serving without torch: who runs when, what a latency counts from, and the evidence against engines that cheat."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipexperf.bench.modes import _engine
from ipexperf.bench.modes._engine import Request, Served

RATE = 10.0
PLAN = _engine.planned(12, RATE, 64, seed=0)


class Machine:
    """A network and a clock: reading a token of a prompt takes `read` seconds, a pass of decoding `decode`."""

    def __init__(self, read: float = 0.001, decode: float = 0.01) -> None:
        self.now, self.slept = 0.0, 0.0
        self.rows: dict[int, tuple[int, int]] = {}
        """The text of each row, and its tokens in the cache."""
        self.passes: list[int] = []
        """How many texts decoded in each pass."""
        self._read, self._decode = read, decode

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.slept += seconds

    def read(self, request: Request, row: int) -> None:
        self.rows[row] = (request.text, request.prompt)
        self.now += self._read * request.prompt

    def decode(self, running: Sequence[Served]) -> None:
        for row, one in enumerate(running):
            text, cached = self.rows[row]
            assert (text, cached) == (one.request.text, one.cached), "a row holds another text, or other tokens of it"
            self.rows[row] = (text, cached + 1)
        self.passes.append(len(running))
        self.now += self._decode

    def move(self, source: int, target: int, tokens: int) -> None:
        text, cached = self.rows[source]
        assert cached == tokens
        self.rows[target] = (text, cached)

    def serve(self, plan: Sequence[Request] = PLAN, rows: int = 4) -> list[Served]:
        return _engine.serve(plan, rows, self, self.clock, self.sleep)


plans = st.builds(
    _engine.planned, st.integers(1, 20), st.sampled_from([0.5, 10.0, 1e6]), st.integers(4, 64), st.integers(0, 99)
)


@given(plans, st.integers(1, 8))
def test_every_request_gets_its_tokens_from_a_row_of_its_own(plan: list[Request], rows: int) -> None:
    """Whoever leaves and joins meanwhile, a row goes on with the text that it holds (asserted by the machine)."""
    machine = Machine()
    served = machine.serve(plan, rows)
    assert sorted(one.request.text for one in served) == list(range(len(plan)))
    assert all(len(one.moments) == one.request.tokens for one in served)
    assert max(machine.passes) <= rows
    assert _engine.generated([served], plan).ok


@given(plans, st.integers(1, 8))
def test_requests_that_come_at_once_share_as_few_passes_as_possible(plan: list[Request], rows: int) -> None:
    machine = Machine()
    machine.serve([dataclasses.replace(one, arrival=0.0) for one in plan], rows)
    assert len(machine.passes) == _engine.passes(plan, rows)


def test_a_latency_counts_from_the_arrival_and_not_from_when_the_engine_looked() -> None:
    """The second request comes while the first one's prompt is read, and waits for that and for one pass."""
    first, second = Request(0, 0.0, 100, 2), Request(1, 0.05, 10, 2)
    served = {one.request.text: one for one in Machine(read=0.001, decode=0.02).serve([first, second], rows=2)}
    assert served[1].arrived == 0.05
    assert served[1].admitted == pytest.approx(0.1)
    assert served[1].first_token == pytest.approx(0.1 + 0.01 - 0.05)
    assert served[1].between_tokens == pytest.approx(0.02)
    assert served[1].per_token == pytest.approx((0.1 + 0.01 + 0.02 - 0.05) / 2)


def test_an_idle_engine_sleeps_until_the_next_request() -> None:
    machine = Machine(read=0.0, decode=0.0001)
    served = machine.serve()
    assert machine.slept > 0.9 * max(one.arrival for one in PLAN)
    assert max(_engine.idle_delays(served)) < 1e-9


def test_the_requests_of_a_case_never_change() -> None:
    """A history compares them over years, and pythons: these numbers are for ever."""
    found = [(round(one.arrival, 4), one.prompt, one.tokens) for one in _engine.planned(3, 2.0, 64, seed=0)]
    assert found == [(0.6309, 14, 20), (1.1369, 18, 27), (1.2666, 15, 19)]
    assert _engine.planned(3, 2.0, 64, seed=1) != _engine.planned(3, 2.0, 64, seed=0)
    assert all(one.prompt + one.tokens <= 64 for one in _engine.planned(500, 2.0, 64, seed=3))


def test_requests_arrive_as_a_poisson_process_of_the_stated_rate() -> None:
    """Gaps are exponential: their standard deviation is their mean. Even gaps would have none."""
    plan = _engine.planned(4000, 50.0, 64, seed=5)
    gaps = [after.arrival - before.arrival for before, after in itertools.pairwise(plan)]
    mean = sum(gaps) / len(gaps)
    deviation = math.sqrt(sum((gap - mean) ** 2 for gap in gaps) / len(gaps))
    assert mean == pytest.approx(1 / 50, rel=0.01)
    assert deviation / mean == pytest.approx(1.0, abs=0.05)


# Liars


def honest() -> list[Served]:
    return Machine().serve()


def test_a_case_without_a_replay_proves_nothing() -> None:
    assert not _engine.arrivals([], PLAN, RATE).ok
    assert not _engine.generated([], PLAN).ok


def test_a_generator_that_waits_for_answers_is_caught() -> None:
    """A closed loop sends the next request when the last one is answered, and counts from there: nobody ever waits."""
    served = honest()
    assert _engine.arrivals([served, honest()], PLAN, RATE).ok
    for one in served:
        one.arrived = one.admitted
    found = _engine.arrivals([served], PLAN, RATE)
    assert not found.ok
    assert int(found.found.split()[0]) < len(PLAN)


def test_dropped_requests_are_caught() -> None:
    assert not _engine.arrivals([honest()[1:]], PLAN, RATE).ok
    twice = [*honest()[1:], honest()[1]]
    assert not _engine.arrivals([twice], PLAN, RATE).ok, "one request in the place of another"


def test_a_generator_that_comes_late_itself_is_caught() -> None:
    """Nothing ran, and yet a request waited."""

    class Sleepy(Machine):
        def sleep(self, seconds: float) -> None:
            super().sleep(seconds + 0.02)

    found = _engine.arrivals([Sleepy(decode=0.0001).serve()], PLAN, RATE)
    assert not found.ok
    assert "an idle engine began after 20.00 ms" in found.found


def test_a_generation_that_stops_early_is_caught() -> None:
    served = honest()
    served[3].moments.pop()
    assert _engine.generated([honest()], PLAN).ok
    assert not _engine.generated([served], PLAN).ok
    served[4].moments.append(served[4].moments[-1] + 1)
    assert not _engine.generated([served], PLAN).ok, "as many tokens in sum, but not of each request"


def calls(rows: int, plan: Sequence[Request] = PLAN) -> list[int]:
    """The tokens of each call of a linear layer, if requests come at once and no more than these rows run together."""
    machine = Machine()
    machine.serve([dataclasses.replace(one, arrival=0.0) for one in plan], rows)
    return [*(one.prompt for one in plan), *machine.passes]


def test_requests_that_are_served_one_by_one_are_caught() -> None:
    together, alone = calls(4), calls(1)
    assert _engine.batched([together] * 3, PLAN, 4).ok
    found = _engine.batched([alone] * 3, PLAN, 4)
    assert not found.ok
    assert found.expected.endswith(f"(one by one: {len(alone)})")
    assert not _engine.batched([], PLAN, 4).ok, "no linear layer, no evidence"


def test_a_cache_that_is_not_used_is_caught() -> None:
    """Without it each token takes its whole text through the layers again."""
    assert _engine.tokens_served([calls(4)], PLAN).ok
    again = [count * 10 for count in calls(4)]
    found = _engine.tokens_served([calls(4), again], PLAN)
    assert not found.ok
    assert " or " in found.found


def test_a_load_that_cannot_be_sustained_is_said() -> None:
    """It is a property of the software under test, so it is no failure of the proof."""
    assert _engine.load_noted(2.0, 40.0, 0.0) == []
    [load] = _engine.load_noted(2.0, 40.0, 80.0)
    assert load == "2 requests a second wanted 40 tokens a second; with all at once it reached 80"
    assert "could not sustain its load" in _engine.load_noted(2.0, 40.0, 30.0)[1]
