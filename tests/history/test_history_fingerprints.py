"""A fingerprint is stored once for each case and run, its digest with every launch, and both are found again."""

from dataclasses import replace
from typing import Any

from history_records import ENVIRONMENT, OK, captured, make_case, make_measurement

from ipexperf.history import History
from ipexperf.judge.baseline import CaseBaseline, Session
from ipexperf.result import Measurement
from ipexperf.verdict import Verdict


def ran_so(*digests: str | None, **changes: Any) -> Measurement:
    made = make_measurement(steps=(0.01,) * len(digests), **changes)
    pairs = zip(made.launches, digests, strict=True)
    return replace(made, launches=tuple(replace(launch, fingerprint=captured(digest)) for launch, digest in pairs))


def recorded(history: History, measurement: Measurement, verdict: Verdict = OK) -> tuple[str, Any]:
    uid = history.start_run(ENVIRONMENT, {})
    history.record(uid, measurement, verdict)
    (found,) = history.measurements(uid)
    return uid, found


def test_the_structure_is_stored_once_and_the_digest_in_every_launch(history: History) -> None:
    _, found = recorded(history, ran_so("abc", "abc", "abc"))
    documents = [launch.document["fingerprint"] for launch in found.launches]
    assert [document["digest"] for document in documents] == ["abc"] * 3
    assert ["structure" in document for document in documents] == [True, False, False]
    state, whole = found.common_fingerprint
    assert (state.outcome, whole) == ("same", captured("abc"))


def test_each_structure_is_stored_if_launches_differ(history: History) -> None:
    _, found = recorded(history, ran_so("abc", "other", "abc"))
    assert ["structure" in launch.document["fingerprint"] for launch in found.launches] == [True, True, False]
    assert found.common_fingerprint[0].outcome == "unstable"


def test_a_contended_launch_has_only_its_digest(history: History) -> None:
    """The structure is stored with a launch that counts."""
    made = ran_so("abc", "abc")
    made = replace(made, launches=(replace(made.launches[0], outcome="contended"), made.launches[1]))
    _, found = recorded(history, made)
    assert ["structure" in launch.document["fingerprint"] for launch in found.launches] == [False, True]
    assert found.fingerprint == captured("abc")


def baseline(fingerprint: str | None, *runs: str) -> CaseBaseline:
    sessions = tuple(Session(run, f"2026-01-0{day}", "", (0.01,)) for day, run in enumerate(runs, 1))
    return CaseBaseline(make_case(), sessions, {}, "why", "ada", "2026-01-09", None, ENVIRONMENT, fingerprint)


def test_the_fingerprint_of_a_baseline_is_found_by_its_digest(history: History) -> None:
    """It is that of the newest session with this digest, or of the newest session if the baseline has no digest."""
    old, _ = recorded(history, ran_so("abc"))
    new, _ = recorded(history, ran_so("other"))
    assert history.accepted_fingerprint(baseline("1:abc", old, new)) == captured("abc")
    assert history.accepted_fingerprint(baseline(None, old, new)) == captured("other")
    assert history.accepted_fingerprint(baseline("1:gone", old, new)) is None
