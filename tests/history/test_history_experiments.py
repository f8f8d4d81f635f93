"""Which runs of a case are experiments: those of `ipexperf ab`, and those under variables that are not usual."""

import pytest
from history_records import ENVIRONMENT, OK, make_case, make_measurement

from ipexperf.history.experiments import RUNS, SUBCOMMAND, Ran, experiments
from ipexperf.history.records import Accepted
from ipexperf.history.values import now

SSE41 = {"OMP_NUM_THREADS": "2", "ONEDNN_MAX_CPU_ISA": "SSE41"}
USUAL = {"OMP_NUM_THREADS": "2"}


def told(*variables, accepted=()):
    """The places of the experiments among runs under these variables."""
    return [*experiments([Ran(None, under, place in accepted) for place, under in enumerate(variables)])]


def test_the_first_run_of_a_case_is_none():
    assert told(SSE41) == []


def test_a_variable_that_was_not_set_before_makes_one():
    """So does one that is not set any more, or has another value. What is usual again is none."""
    assert told(USUAL, SSE41, {}, {"OMP_NUM_THREADS": "4"}, USUAL) == [1, 2, 3]
    assert experiments([Ran(None, USUAL, False), Ran(None, SSE41, False)]) == {1: "ONEDNN_MAX_CPU_ISA: unset -> SSE41"}


def test_a_variable_that_is_set_for_good_is_usual_after_some_runs():
    assert told(*[USUAL] * 2, *[SSE41] * 5) == [2, 3, 4]
    assert told(*[USUAL] * 20, *[SSE41] * 20) == [*range(20, 20 + RUNS // 2 + 1)]


def test_a_variable_that_each_run_has_otherwise_makes_none():
    """Such as the folder of a job: half of the runs before have no value of it in common."""
    jobs = [{"TORCHINDUCTOR_CACHE_DIR": f"/job/{number}"} for number in range(20)]
    assert told(*jobs) == [1, 2]
    assert told(*jobs, {**jobs[0], **SSE41}) == [1, 2, 20]


def test_what_a_baseline_was_accepted_under_is_usual():
    """From its run on, and what was usual before still is."""
    assert told(*[USUAL] * 4, SSE41, SSE41, USUAL, {}, accepted=[4]) == [7]


def test_a_run_without_a_worker_is_none():
    """It failed for all that is known, and a failure is a state."""
    assert told(USUAL, None, SSE41) == [2]


def test_a_run_of_ab_is_one_and_a_run_of_another_subcommand_is_none():
    runs = [Ran(subcommand, USUAL, False) for subcommand in (None, "ab", "evidence")]
    assert experiments(runs) == {1: "a run of ipexperf ab"}


@pytest.mark.parametrize("accepted", [False, True])
def test_a_run_under_another_variable_is_one_unless_it_was_accepted(history, accepted):
    for day, variables, step in ((1, USUAL, 0.010), (2, SSE41, 0.030)):
        environment = {**ENVIRONMENT, "variables": variables}
        uid = history.start_run(environment, {"started_at": f"2026-05-0{day}T10:00:00Z"})
        history.record(uid, make_measurement(steps=(step,) * 3, environment=environment), OK)
    if accepted:
        case, key = make_case(), ENVIRONMENT["machine_key"]
        with history.accepting([Accepted(uid, case, case, key, frozenset([uid]), now(), "me", "wished")]):
            pass
    points = history.trend("step_time")
    tried = history.experiments(set(points["case_uid"]))
    assert [run == uid for _, _, run in tried] == ([] if accepted else [True])


def test_a_run_of_ab_in_a_history_is_one(history):
    uid = history.start_run(ENVIRONMENT, {SUBCOMMAND: "ab"})
    history.record(uid, make_measurement(), OK)
    assert history.experiments([make_case().uid]) == {
        (make_case().uid, ENVIRONMENT["machine_key"], uid): "a run of ipexperf ab"
    }
