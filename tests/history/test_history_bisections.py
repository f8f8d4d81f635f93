"""Searches for culprits in a history: they belong to no run, and merging and pruning leave them intact."""

from dataclasses import replace

from history_records import HARDWARE, OK, make_case, make_measurement

from ipexperf.history import History, exports, pruning
from ipexperf.judge.bisection import BisectionRecord, Change
from ipexperf.ratio import Ratio

GOOD = "# ipexperf lock 1\n# python 3.11.7\n# platform CPython linux x86_64\ntorch==2.7.0\n"
BAD = GOOD.replace("2.7.0", "2.8.0")
SEARCH = BisectionRecord(
    case=make_case(),
    good="lock:good.txt",
    bad="this interpreter",
    outcome="culprit",
    reason="torch is enough, and without it the bad end is not slower",
    culprits=(Change("package", "torch", "2.7.0", "2.8.0"),),
    ends=Ratio(1.09, 1.06, 1.12),
    culprit=Ratio(1.08, 1.05, None),
    ran=("a -> b",),
    last_good=GOOD,
    first_bad=BAD,
    measured=7,
    differences=30,
    machine_key=HARDWARE["machine_key"],
    started_at="2026-01-01T00:00:00.000000+00:00",
    finished_at="2026-01-01T00:10:00.000000+00:00",
)
UNKNOWN = BisectionRecord(
    case=make_case(),
    good="a",
    bad="b",
    outcome="cannot tell",
    reason="the noise is larger than the difference between both ends",
    suspects=("torch", "numpy"),
    measured=1,
    differences=2,
    machine_key=HARDWARE["machine_key"],
    started_at="2026-01-02T00:00:00.000000+00:00",
    finished_at="2026-01-02T00:10:00.000000+00:00",
)


def keep(target, *searches):
    with History.open(target) as history:
        for one in searches:
            history.record_bisection(one, "suite")


def kept(target):
    with History.open(target) as history:
        return history.bisections()


def test_a_search_is_read_as_it_was_recorded(target):
    """With its locks, and also without a culprit or its cost."""
    keep(target, SEARCH, UNKNOWN)
    assert kept(target) == [SEARCH, UNKNOWN]


def test_a_search_repeated_from_recorded_answers_is_stored_once(target):
    """One that ended otherwise is another row."""
    later = replace(SEARCH, started_at=UNKNOWN.started_at, finished_at=UNKNOWN.finished_at)
    keep(target, SEARCH, later, replace(later, ends=Ratio(1.2, 1.1, 1.3)))
    assert len(kept(target)) == 2


def test_a_run_shows_and_exports_the_searches_of_its_cases_on_its_machine(target):
    """Also those of a case that was measured in pairs, and none of other cases or machines."""
    against = make_case(knobs=(("against", "lock:abc"),))
    keep(target, SEARCH, replace(SEARCH, machine_key="other"), replace(SEARCH, case=make_case("other")))
    with History.open(target) as history:
        uid = history.start_run(HARDWARE, {})
        history.record(uid, make_measurement(against), OK)
        detail = history.show(uid)
    assert detail.bisections == (SEARCH,)
    assert detail.to_json()["bisections"][0]["culprits"][0]["name"] == "torch"
    assert exports.pytest_benchmark(detail)["bisections"][0]["outcome"] == "culprit"


def test_pruning_leaves_searches_and_their_cases(target):
    """Even if the runs that measured their candidates are deleted and the case is in no other run."""
    keep(target, replace(SEARCH, case=make_case("another")))
    with History.open(target) as history:
        uid = history.start_run(HARDWARE, {"started_at": "2025-01-01T00:00:00Z"})
        history.record(uid, make_measurement(), OK)
        assert pruning.prune(history, "2025-06-01", delete_them=True).runs == (uid,)
    assert kept(target) == [replace(SEARCH, case=make_case("another"))]
