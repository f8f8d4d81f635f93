"""The last runs of a branch as a baseline: which of them count, and how many."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

import pytest
from history_records import ENVIRONMENT, OK, make_case, make_launch, make_measurement

from ipexperf.history import window_runs
from ipexperf.history.windows import Windows
from ipexperf.judge.policy import Policy
from ipexperf.result import Launch, Verdict

CASE = make_case()
MOMENTS = count()


def environment(branch="main", **more):
    return {**ENVIRONMENT, "git": {"commit": "abc", "branch": branch, "dirty": False}, **more}


def night(history, number, step=0.01, *, where=None, launches=None, verdict=OK, case=CASE):
    where = where or environment()
    uid = history.start_run(where, {"started_at": f"2026-01-{number:02d}T00:00:00Z"})
    launches = launches or tuple(make_launch(index, step + 0.0001 * index, accuracy=0.9) for index in range(3))
    moment = f"2026-01-{number:02d}T00:00:00.{next(MOMENTS):06d}Z"  # no two cases of a host begin at the same
    history.record(uid, make_measurement(case, launches=launches, environment=where, started_at=moment), verdict)
    history.finish_run(uid, "finished")
    return uid


def window(history, runs=12, where=None, before=None):
    return Windows(history, runs).of(CASE, where or environment(), before)


def test_the_last_runs_are_the_sessions_oldest_first(history):
    """As many as requested, each with its launches."""
    uids = [night(history, number, 0.01 + number / 1000) for number in range(1, 7)]
    found = window(history, 4)
    assert [session.run for session in found.sessions] == uids[2:]
    assert found.sessions[0].launches == pytest.approx((0.0132, 0.0133, 0.0134), abs=1e-3)
    assert (found.accepted_by, found.reason) == ("the history", "the last 4 runs of main")
    assert found.accuracy == {"accuracy": pytest.approx(0.9)}


def test_other_branches_and_machines_are_left_out(history):
    night(history, 1)
    night(history, 2, where=environment("feature"))
    night(history, 3, where=environment(machine_key="another"))
    assert len(window(history).sessions) == 1
    assert window(history, where=environment("nowhere")) is None


def test_experiments_are_no_sessions(history):
    """A run under a variable that the nights before it did not have is none, however slow it was."""
    uids = [night(history, number) for number in (1, 2, 3)]
    night(history, 4, 0.03, where=environment(variables={"ONEDNN_MAX_CPU_ISA": "SSE41"}))
    assert [session.run for session in window(history).sessions] == uids


def test_only_earlier_runs_count(history):
    for number in (1, 2, 3):
        night(history, number)
    assert len(window(history, before="2026-01-03T00:00:00Z").sessions) == 2


def test_a_run_and_its_resumed_copy_are_one_session(history):
    """Both have the same launches. Counted twice, the machine would seem to have no noise."""
    moments = [f"2026-01-0{number}T00:05:00Z" for number in (1, 2, 2)]
    for number, moment in enumerate(moments, 1):
        uid = history.start_run(environment(), {"started_at": f"2026-01-0{number}T00:00:00Z"})
        history.record(uid, make_measurement(CASE, environment=environment(), started_at=moment), OK)
    assert len(window(history).sessions) == 2
    assert len(window(history, before=moments[-1]).sessions) == 1


def test_failed_inaccurate_and_single_launch_runs_are_left_out(history):
    """A night without a number, one whose accuracy left its bound, and one that has no spread."""
    night(history, 1)
    night(history, 2, launches=(Launch(0, "crashed", "signal 11"),), verdict=Verdict("failed", "crashed"))
    night(history, 3, verdict=Verdict("invalid", "accuracy changed"))
    night(history, 4, launches=(make_launch(0, 0.01),))
    assert len(window(history).sessions) == 1


def test_a_regressed_run_is_in_the_window(history):
    """The window moves with the branch. The anchor shows that the branch became slower."""
    night(history, 1)
    night(history, 2, 0.02, verdict=Verdict("regressed", "slower"))
    assert len(window(history).sessions) == 2


def test_sessions_with_other_threads_are_left_out_if_there_are_others(history):
    """Alone they stay, and the judge will call them not comparable."""
    other = environment(hardware={"threads": 4})
    night(history, 1, where=other)
    here = environment(hardware={"threads": 2})
    assert window(history, where=here).environment["hardware"]["threads"] == 4
    night(history, 2, where=here)
    assert [x.run for x in window(history, where=here).sessions] != []
    assert window(history, where=here).environment["hardware"]["threads"] == 2
    assert len(window(history, where=here).sessions) == 1


def test_with_a_yardstick_sessions_have_relative_times(history):
    """Runs without the yardstick have another unit."""
    where = environment(yardstick={"content": "aaaa"})
    launches = tuple(make_launch(index, 0.01, relative_time=0.5) for index in range(3))
    night(history, 1)
    night(history, 2, where=where, launches=launches)
    found = window(history, where=where)
    assert [session.launches for session in found.sessions] == [(0.5, 0.5, 0.5)]
    assert found.step_time == pytest.approx(0.01)


def test_a_case_that_never_ran_has_no_window(history):
    night(history, 1, case=replace(CASE, batch=4))
    assert window(history) is None


def one_launch(history, number):
    night(history, number, launches=(make_launch(0, 0.01),))


def wrong(history, number):
    night(history, number, verdict=Verdict("invalid", "accuracy changed"))


def other_threads(history, number):
    night(history, number, where=environment(hardware={"threads": 4}))


def other_yardstick(history, number):
    launches = tuple(make_launch(index, 0.01, relative_time=0.5) for index in range(3))
    night(history, number, where=environment(yardstick={"content": "bbbb"}), launches=launches)


@pytest.mark.parametrize("size", [window_runs.PAGE, 3, 1])
@pytest.mark.parametrize("left_out", [one_launch, wrong, other_threads, other_yardstick])
def test_runs_that_are_left_out_do_not_shorten_the_window(history, monkeypatch, left_out, size):
    """Quick tries by hand after good nights: the window has the nights, over as many pages as it takes."""
    monkeypatch.setattr(window_runs, "PAGE", size)
    uids = [night(history, number) for number in range(1, 6)]
    for number in (3, *range(6, 13)):
        left_out(history, number)
    assert [session.run for session in window(history, 4).sessions] == uids[1:]


def test_runs_with_another_yardstick_do_not_shorten_the_window(history):
    """They are in the same series."""
    where = environment(yardstick={"content": "aaaa"})
    launches = tuple(make_launch(index, 0.01, relative_time=0.5) for index in range(3))
    uid = night(history, 1, where=where, launches=launches)
    for number in range(2, 8):
        other_yardstick(history, number)
    assert [session.run for session in window(history, 3, where=where).sessions] == [uid]


def test_runs_with_equal_times_are_each_read_once_over_pages(history, monkeypatch):
    """Imported runs may have equal times."""
    monkeypatch.setattr(window_runs, "PAGE", 2)
    uids = {night(history, 1) for _ in range(5)}
    found = [session.run for session in window(history).sessions]
    assert (len(found), set(found)) == (5, uids)


def test_only_the_runs_of_the_window_are_read(history, monkeypatch):
    """Neither runs that are left out nor older ones, because a history may be long."""
    monkeypatch.setattr(window_runs, "PAGE", 3)
    for number in range(1, 10):
        night(history, number)
    for number in range(10, 20):
        (wrong, one_launch, other_threads)[number % 3](history, number)
    read, pages = [], []
    measurements, page = history.measurements, window_runs.page
    monkeypatch.setattr(history, "measurements", lambda uid: read.append(uid) or measurements(uid))
    monkeypatch.setattr(window_runs, "page", lambda *given, **more: pages.append(1) or page(*given, **more))
    assert [session.run for session in window(history, 3).sessions] == read[::-1]
    assert (len(read), len(pages)) == (3, 3)


def test_only_the_newest_verdict_decides_whether_a_run_is_left_out(history):
    uid = night(history, 1, verdict=Verdict("invalid", "accuracy changed"))
    assert window(history) is None
    policy = Policy().for_run()
    history.settle(uid, {}, {CASE.uid: replace(OK, policy=policy.label)}, policy)
    assert [session.run for session in window(history).sessions] == [uid]
