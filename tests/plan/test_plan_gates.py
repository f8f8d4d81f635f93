"""`--perf-gate` and the mark's `gate`: metrics that can be judged, by name."""

from typing import Any

import pytest

from ipexperf.errors import UsageError
from ipexperf.plan import gates
from ipexperf.plan.options import Options
from ipexperf.result import MEAN, METRICS, PRIMARY


def options(*names: str) -> Options:
    return Options(gate=names, sources={"gate": "--perf-gate"})


def test_time_and_memory_are_judged_where_nobody_says_what() -> None:
    assert gates.gate(Options()) == (PRIMARY, MEAN, "held_memory", "step_memory")


def test_names_are_taken_in_one_order_and_once() -> None:
    assert gates.gate(options("compile_time", PRIMARY, PRIMARY)) == (PRIMARY, "compile_time")


def test_all_is_every_metric_that_has_a_gate() -> None:
    judged = gates.gate(options("all"))
    assert judged == gates.judgeable()
    assert set(judged) == {PRIMARY, *(name for name, metric in METRICS.items() if metric.gate is not None)}


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("peak_memori", "--perf-gate: unknown metric 'peak_memori': did you mean peak_memory?"),
        ("page_faults", "--perf-gate: page_faults is recorded, not judged: choose from step_time, mean_step, p50"),
        ("accuracy", "--perf-gate: accuracy is always judged: a case that is not accurate is invalid"),
    ],
)
def test_what_cannot_be_judged_is_refused_in_one_sentence(name: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        gates.gate(options(PRIMARY, name))
    assert str(caught.value).startswith(said)
    assert "\n" not in str(caught.value)


def test_a_mark_may_have_a_gate_of_its_own() -> None:
    wish = gates.wish({"gate": ["peak_memory"], "tolerance": 0.1}, "test_it")
    assert (wish.gate, wish.tolerance) == (("peak_memory",), 0.1)
    assert gates.wish({"models": ["tiny"]}, "test_it") == gates.AS_ALL


@pytest.mark.parametrize("names", ["peak_memory", [], ()])
def test_a_mark_needs_a_list_of_names(names: Any) -> None:
    with pytest.raises(UsageError, match=r"test_it: pytest\.mark\.perf: gate: expected a list of metrics"):
        gates.wish({"gate": names}, "test_it")


def test_a_mark_with_an_unknown_name_says_where() -> None:
    with pytest.raises(UsageError, match=r"test_it: pytest.mark.perf: gate: unknown metric 'watts'"):
        gates.wish({"gate": ["watts"]}, "test_it")


@pytest.mark.parametrize(
    ("names", "fresh"),
    [((PRIMARY, "held_memory"), False), ((PRIMARY, "peak_memory"), True), ((PRIMARY, "compile_time"), True)],
)
def test_what_only_fresh_processes_tell_needs_fresh_launches(names: tuple[str, ...], fresh: bool) -> None:  # noqa: FBT001
    """Memory that is held does not: one process tells it nearly exactly."""
    assert gates.needs_fresh(names) is fresh
