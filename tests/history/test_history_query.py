"""Naming runs and following series."""

import pytest
from history_records import ENVIRONMENT, OK, make_case, make_measurement

from ipexperf.errors import HistoryError
from ipexperf.history import History
from ipexperf.ratio import Ratio
from ipexperf.verdict import Verdict

# Begun out of order, as a merge leaves them: the order of ids is not the order of time.
DAYS = ("2026-05-03T08:00:00Z", "2026-05-01T08:00:00Z", "2026-05-02T08:00:00Z", "2026-05-02T20:00:00Z")
COMMITS = ("cccc3333", "aaaa1111", "bbbb2222", "bbbb2222")


@pytest.fixture(scope="module")
def history(tmp_path_factory):
    with History.open(tmp_path_factory.mktemp("history") / "history.db") as opened:
        for number, (day, commit) in enumerate(zip(DAYS, COMMITS, strict=True)):
            branch = "topic" if number == 3 else "main"
            environment = {**ENVIRONMENT, "git": {"commit": commit, "branch": branch, "dirty": False}}
            uid = opened.start_run(environment, {"started_at": day, "number": number})
            opened.record(uid, make_measurement(steps=(0.01 + number,), environment=environment), OK)
            other = make_measurement(make_case("vgg16", dtype="fp32"), environment=environment)
            opened.record(uid, other, Verdict("regressed", "slower", ratio=Ratio(1.2), policy="v1"))
        yield opened


def test_a_run_from_the_future_is_not_the_last(target):
    """The clock of a host was wrong. `gate` would judge that run, and never the one that has just ended."""
    with History.open(target) as opened:
        late = opened.start_run(ENVIRONMENT, {"started_at": "2999-01-01T00:00:00Z"})
        with pytest.raises(HistoryError, match=f"run {late} began at 2999-01-01T.* in the future.*; name the run"):
            opened.find_run("last")
        right = opened.start_run(ENVIRONMENT, {"started_at": "2026-05-01T08:00:00Z"})
        with pytest.raises(HistoryError, match=f"'last~1' is not clear.*; name the run until then, such as {right}"):
            opened.find_run("last~1")
        assert opened.find_run(late[:13]).uid == late


def number(history, selector):
    return history.find_run(selector).meta["number"]


def test_runs_are_listed_by_time_newest_first(history):
    """By `started_at`, not by row id."""
    assert [run.meta["number"] for run in history.runs()] == [0, 3, 2, 1]
    assert [run.meta["number"] for run in history.runs(2)] == [0, 3]
    assert history.runs()[0].outcomes == {"ok": 1, "regressed": 1}


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("last", 0),
        ("latest", 0),
        ("last~1", 3),
        ("last~", 3),
        ("last^", 3),
        ("last^^", 2),
        ("last~3", 1),
        ("first", 1),
        ("2026-05-02", 3),
        ("2026-05-02~1", 2),
        ("2026-05-01", 1),
        ("2026-05", 0),
        ("2026-05~3", 1),
        ("2026-05-02T12:00Z", 2),
        ("2026-05-02 20:00", 3),
        ("aaaa", 1),
        ("AAAA1111", 1),
        ("bbbb2222", 3),
        ("bbbb2222~1", 2),
        ("main", 0),
        ("main~1", 2),
        ("topic", 3),
        (" last ", 0),
    ],
)
def test_a_run_is_found_by_its_place_its_day_its_branch_or_its_commit(history, selector, expected):
    """A day, a month, a moment, a branch or a commit names its last run, and `~1` the one before it."""
    assert number(history, selector) == expected


def test_a_run_is_found_by_its_uid_or_an_unambiguous_beginning(history):
    uids = [run.uid for run in history.runs()]
    for uid in uids:
        assert history.find_run(uid).uid == uid
        assert history.find_run(uid[:30]).uid == uid
    with pytest.raises(HistoryError, match=f"'{uids[0][:4]}' is ambiguous: it begins {uids[0][:4]}"):
        history.find_run(uids[0][:4])


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        ("last~4", "no run matches 'last~4': the newest of 4 is "),
        ("2025-01-01", "no run matches '2025-01-01'"),
        ("2026-05-01~1", "no run matches '2026-05-01~1'"),
        ("2025-04", "no run matches '2025-04'"),
        ("first~1", "no run matches 'first~1'"),
        ("main~9", "no run matches 'main~9'"),
        ("yesterday", "no run matches 'yesterday'"),
        ("2025-13-01", "is not a date or time"),
        ("zzzz", "no run matches 'zzzz'"),
        ("%%%%", "no run matches '%%%%'"),
        ("abc", "too short"),
        ("", "too short"),
    ],
)
def test_an_unknown_run_is_refused_with_a_suggestion(history, selector, message):
    with pytest.raises(HistoryError) as raised:
        history.find_run(selector)
    assert message in str(raised.value)


def test_a_trend_is_in_the_order_of_time_and_carries_the_verdict(history):
    points = history.trend(model="resnet50", device="cpu", dtype="bf16", mode="infer", stack="ipex")
    assert list(points["median"]) == [1.01, 2.01, 3.01, 0.01]
    assert list(points["commit"]) == ["aaaa1111", "bbbb2222", "bbbb2222", "cccc3333"]
    assert set(points["verdict"]) == {"ok"}
    assert points["ratio"][0] == 1.01
    vgg = history.trend(model="vgg16")
    assert (set(vgg["verdict"]), set(vgg["ratio"])) == ({"regressed"}, {1.2})
    assert history.trend("throughput")["ratio"].isna().all()


def test_a_name_that_is_two_things_is_ambiguous(target):
    """A branch has the name of the beginning of a commit."""
    with History.open(target) as opened:
        for commit, branch in (("cafe1111", "main"), ("dddd1111", "cafe")):
            opened.start_run({**ENVIRONMENT, "git": {"commit": commit, "branch": branch}}, {})
        with pytest.raises(HistoryError, match="'cafe' is ambiguous: it begins commit cafe1111, branch cafe"):
            opened.find_run("cafe")
        assert opened.find_run("cafe1").branch == "main"


def test_today_and_yesterday_are_days_of_utc(target):
    """A run that began just now is of today."""
    with History.open(target) as opened:
        uid = opened.start_run(ENVIRONMENT, {})
        assert uid in {opened.find_run(word).uid for word in _days(opened)}


def _days(opened):
    """Today; at midnight the run may be of yesterday."""
    return ["today"] if opened.find_run("last").started_at >= opened.span("today", None)["since"] else ["yesterday"]
