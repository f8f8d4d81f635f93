"""The board of the newest runs has the same content as the separate queries, in few statements."""

from dataclasses import replace

import pytest
from history_records import ENVIRONMENT, OK, make_case, make_measurement

from ipexperf.history import History
from ipexperf.history.points import rows
from ipexperf.history.records import Accepted
from ipexperf.judge.policy import Policy
from ipexperf.ratio import Ratio
from ipexperf.result import PRIMARY
from ipexperf.verdict import BaselineEvidence, Verdict

CASES = (make_case(), make_case("vgg16"))


@pytest.fixture
def history(target):
    with History.open(target) as opened:
        for day in (3, 1, 2):  # a merged run is not chronological
            uid = opened.start_run(ENVIRONMENT, {"started_at": f"2026-05-0{day}T10:00:00Z"})
            for case in CASES:
                threads = {**ENVIRONMENT, "variables": {"OMP_NUM_THREADS": str(day)}}
                opened.record(uid, make_measurement(case, (0.01 * day, 0.011 * day), environment=threads), OK)
            opened.finish_run(uid, "finished")
        yield opened


def test_it_has_every_point_that_the_trend_has(history):
    """The same runs in the order of time, the same numbers and verdicts."""
    board = history.board((PRIMARY, "throughput"), 10)
    assert [run.started_at[:10] for run in board.runs] == ["2026-05-01", "2026-05-02", "2026-05-03"]
    assert board.older == 0
    for metric in (PRIMARY, "throughput"):
        points = {(row["run_uid"], row["case_uid"]): row for row in rows(history.trend(metric))}
        spots = {(board.runs[spot.run].uid, line.case.uid): spot for line in board.lines for spot in line.spots[metric]}
        assert spots.keys() == points.keys()
        for key, spot in spots.items():
            assert tuple(spot)[1:] == tuple(points[key][name] for name in ("n", "median", "lo", "hi", "outcome"))
    assert {tuple(judged)[:2] for line in board.lines for judged in line.verdicts.values()} == {("ok", 1.01)}


def test_each_case_has_its_own_environment(history):
    """A run has one, and what its cases were given may be another."""
    board = history.board((PRIMARY,), 10)
    for line in board.lines:
        known = [board.environments[line.environments[spot.run]] for spot in line.spots[PRIMARY]]
        assert [one["variables"]["OMP_NUM_THREADS"] for one in known] == ["1", "2", "3"]


def test_the_limit_keeps_the_newest_runs(history):
    """Older runs are counted, and a case that only they have is left out."""
    board = history.board((PRIMARY,), 2)
    assert ([run.started_at[:10] for run in board.runs], board.older) == (["2026-05-02", "2026-05-03"], 1)
    assert [[spot.run for spot in line.spots[PRIMARY]] for line in board.lines] == [[0, 1], [0, 1]]


def test_the_newest_verdict_of_a_case_is_shown(history):
    uid = history.find_run("last").uid
    moved = Verdict("platform_shift", "moved with the platform", ratio=Ratio(1.2), policy=Policy().for_run().label)
    history.settle(uid, {"line": "shift"}, {CASES[0].uid: moved}, Policy().for_run())
    board = history.board((PRIMARY,), 10)
    found = {line.case: line.verdicts[2].outcome for line in board.lines}
    assert found == {CASES[0]: "platform_shift", CASES[1]: "ok"}
    assert history.show("last").cases[0].outcome == found[history.show("last").cases[0].case]


def test_verdicts_have_their_baseline_and_acceptances_their_run(history):
    """The step time of the baseline is beside the verdict."""
    uid = history.find_run("last").uid
    session = Accepted(uid, CASES[0], CASES[0], "xeon-8480-2s", frozenset({uid}), "2026-05-04T00:00:00Z", "ada", "good")
    with history.accepting([session]):
        pass
    again = history.start_run(ENVIRONMENT, {"started_at": "2026-05-05T10:00:00Z"})
    history.record(again, make_measurement(CASES[0]), replace(OK, evidence=BaselineEvidence(step_time=0.03)))
    (line,) = [line for line in history.board((PRIMARY,), 10).lines if line.case == CASES[0]]
    assert [line.verdicts[run].baseline for run in range(4)] == [None, None, None, 0.03]
    assert [(one.run, one.by, one.superseded) for one in line.accepted] == [(2, "ada", False)]
