"""What changed since when: the runs that bracket each change, and what lies between them."""

import random
from dataclasses import replace

import pytest
from history_records import CRASHED, ENVIRONMENT, OK, make_case, make_launch, make_measurement

from ipexperf.history import History, changed
from ipexperf.history.changed import changes
from ipexperf.history.experiments import SUBCOMMAND
from ipexperf.verdict import Verdict

RUNS = 24
MOVED = 14
"""The first run of the new level."""


def environment(number):
    moved = number >= MOVED
    return {
        **ENVIRONMENT,
        "hardware": {"cpu": "Xeon 8480+", "kernel": "6.5" if moved else "6.1"},
        "software": {"torch": "2.9.0+cpu" if moved else "2.8.0+cpu", "ipex": "2.8.0+cpu"},
        "git": {"commit": f"{number:08d}", "branch": "main", "dirty": False},
    }


@pytest.fixture(scope="module")
def history(tmp_path_factory):
    """One case becomes slower on one night, one faster, one stays; and a run fails in between."""
    chance = random.Random(5)  # noqa: S311 - a simulation, no secret
    with History.open(tmp_path_factory.mktemp("history") / "history.db") as opened:
        for number in range(RUNS):
            moved = number >= MOVED
            uid = opened.start_run(environment(number), {"started_at": f"2026-05-{number + 1:02d}T02:00:00Z"})
            for model, factor in (("slower", 1.2), ("faster", 0.8), ("steady", 1.0)):
                step = 0.01 * (factor if moved else 1) * (1 + chance.uniform(-0.01, 0.01))
                launches = (make_launch(0, step), CRASHED) if model == "slower" and number == MOVED else None
                measured = make_measurement(make_case(model), steps=(step, step), environment=environment(number))
                measured = replace(measured, launches=launches) if launches else measured
                opened.record(uid, measured, Verdict("failed", "crashed") if launches else OK)
        yield opened


def test_a_change_names_its_runs_its_commits_and_what_differs(history):
    """The last good run of the old level, the first of the new one, and what differs between them."""
    found = changes(history, ["step_time"])
    assert [(x.model, x.direction) for x in found.changes] == [("slower", "regressed"), ("faster", "improved")]
    slower, faster = found.changes
    assert (faster.last_commit, faster.first_commit) == (f"{MOVED - 1:08d}", f"{MOVED:08d}")
    assert faster.commits == f"{MOVED - 1:08d}..{MOVED:08d}"
    assert (faster.first_started_at[:10], faster.known_started_at[:10]) == ("2026-05-15", "2026-05-18")
    assert faster.differences == (
        "torch: 2.8.0+cpu -> 2.9.0+cpu",
        "kernel: 6.1 -> 6.5",
        f"commit: {MOVED - 1:08d} -> {MOVED:08d}",
    )
    assert faster.ratio == pytest.approx(0.8, rel=0.02)
    assert (faster.runs_before, faster.runs_after) == (MOVED, RUNS - MOVED)
    # The run that failed is no number: the bracket is around it.
    assert slower.first_commit == f"{MOVED + 1:08d}"
    assert (slower.before, slower.after) == (pytest.approx(0.01, rel=0.01), pytest.approx(0.012, rel=0.01))
    assert (found.series, found.short) == (3, 0)


def test_runs_of_ab_are_no_change(target):
    """Somebody tried something slower for an evening. The case's own runs went on as before."""
    with History.open(target) as history:
        for number in range(RUNS):
            tried = 10 <= number < 16
            meta = {"started_at": f"2026-05-{number + 1:02d}T02:00:00Z", **({SUBCOMMAND: "ab"} if tried else {})}
            uid = history.start_run(environment(0), meta)
            step = 0.02 if tried else 0.01 + number % 3 * 1e-5
            history.record(uid, make_measurement(steps=(step, step), environment=environment(0)), OK)
        found = changes(history, ["step_time"])
    assert (found.changes, found.series) == ((), 1)


def test_the_direction_depends_on_the_metric(history):
    """A throughput that fell regressed, and so did the step time that grew."""
    found = changes(history, ["step_time", "throughput"]).changes
    assert sorted((x.model, x.metric, x.direction) for x in found) == [
        ("faster", "step_time", "improved"),
        ("faster", "throughput", "improved"),
        ("slower", "step_time", "regressed"),
        ("slower", "throughput", "regressed"),
    ]


@pytest.mark.parametrize(
    ("asked", "models"),
    [
        ({"since": "2026-05-15"}, ["slower", "faster"]),
        ({"since": "2026-05-18"}, ["slower", "faster"]),
        ({"since": "2026-05-19"}, ["slower"]),
        ({"since": "2026-05-20"}, []),
        ({"since": "last~6"}, ["slower", "faster"]),
        ({"since": "last~5"}, ["slower"]),
        ({"since": "last"}, []),
        ({"since": f"{MOVED:08d}"}, ["slower", "faster"]),
        ({"until": "2026-05-17"}, []),
        ({"model": ["faster", "steady"]}, ["faster"]),
        ({"branch": "topic"}, []),
    ],
)
def test_changes_are_filtered_by_time_and_axes(history, asked, models):
    """The time is that of the fourth run of the new level, with which a change can first be reported."""
    assert [x.model for x in changes(history, ["step_time"], **asked).changes] == models


def test_a_nightly_query_reports_each_change_exactly_once(target):
    """On the fourth night of the new level, to a pipeline that asks for changes since the last run."""
    told = []
    with History.open(target) as nightly:
        for number in range(20):
            step = 0.01 if number < 12 else 0.012
            uid = nightly.start_run(ENVIRONMENT, {"started_at": f"2026-05-{number + 1:02d}T02:00:00Z"})
            nightly.record(uid, make_measurement(make_case("one"), steps=(step,)), OK)
            told.append(len(changes(nightly, ["step_time"], since="last").changes))
    assert told == [0] * 15 + [1] + [0] * 4


def test_runs_with_a_wrong_accuracy_are_in_no_series_of_speed(target):
    """A network with wrong answers that is faster did not improve."""
    wrong = Verdict("invalid", "accuracy changed from the baseline's 0.9 to 0.1", policy=OK.policy)
    with History.open(target) as opened:
        for number in range(24):
            uid = opened.start_run(ENVIRONMENT, {"started_at": f"2026-05-{number + 1:02d}T02:00:00Z"})
            lost = number >= 12
            for model, verdict in (("wrong", wrong if lost else OK), ("right", OK)):
                step = 0.008 if lost else 0.01
                opened.record(uid, make_measurement(make_case(model), steps=(step,)), verdict)
        found = changes(opened, ["step_time", "throughput"])
    assert {x.model for x in found.changes} == {"right"}


def test_short_series_are_counted_and_not_judged(history):
    """Seven runs are not enough, and the result counts such series."""
    found = changes(history, ["step_time"], until="2026-05-07")
    assert (found.changes, found.series, found.short) == ((), 3, 3)


def test_only_some_runs_before_the_range_are_read(history, monkeypatch):
    """They establish the level before it."""
    assert [x.runs_before for x in changes(history, ["step_time"], since="2026-05-13", model="faster").changes] == [14]
    monkeypatch.setattr(changed, "PAST", 4)
    assert [x.runs_before for x in changes(history, ["step_time"], since="2026-05-13", model="faster").changes] == [6]
