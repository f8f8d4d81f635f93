"""The baseline file: what gets in, what does not, and that a rewrite changes no byte."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from judge_records import CASE, ENVIRONMENT, baseline, candidate, environment

from ipexperf.case import FunctionCase
from ipexperf.errors import BaselineError, UsageError
from ipexperf.judge.accept import Acceptance, accept, diff
from ipexperf.judge.baseline import Baselines, dumps, every, machine_keys, read, write

KEY = "xeon-2c"
EMPTY = Baselines(KEY)
KNOWN = Baselines(KEY, (baseline(accuracy={"accuracy": 0.9}),))
TIMES = (0.0100, 0.0101, 0.0099)


def offered(baselines: Baselines, *candidates: object, **options: object) -> Acceptance:
    given_options = {"reason": "new week", "by": "ada", "now": "2026-02-01T00:00:00+00:00", **options}
    return accept(baselines, candidates, **given_options)  # type: ignore[arg-type]


def runs(result: Acceptance) -> list[str]:
    return [session.run for session in result.baselines.cases[0].sessions]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "cannot be read as JSON"),
        ("[]", "has format 'list'"),
        ('{"format": 2}', "has format 2, this ipexperf reads format 1"),
        ('{"format": 1, "machine_key": "other"}', "belongs to machine_key 'other'"),
        ('{"format": 1, "machine_key": "xeon-2c", "environments": {}}', "is damaged"),
        ('{"format": 1, "machine_key": "xeon-2c", "environments": {}, "cases": [3]}', "is damaged"),
    ],
)
def test_a_broken_file_is_one_sentence(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / f"{KEY}.json").write_text(text)
    with pytest.raises(BaselineError, match=said) as caught:
        read(tmp_path, KEY)
    assert "\n" not in str(caught.value)


def _is_there_twice(cases: list[dict[str, Any]]) -> None:
    cases.append({**cases[0], "case": {**cases[0]["case"], "version": 2}})


def _session(**changes: Any) -> Callable[[list[dict[str, Any]]], None]:
    """A change of the first session of the first case."""
    return lambda cases: cases[0]["sessions"][0].update(changes)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (_session(launches=[0.1, 0.1], metrics={"step_time": 0.01}), "run run0: its step_time is 0.01, but the median"),
        (_session(launches=[0.1, 0.0]), "launches above 0 s"),
        (_session(run="run1"), "has a session twice"),
        (_session(metrics={"peak_memory": -5.0}), "has -5 as its peak_memory"),
        (_session(metrics={"accuracy": math.inf}), "has inf as its accuracy"),
        (_session(metrics={"step_time": 0}), "has 0 as its step_time"),
        (lambda cases: cases[0]["accuracy"].update(accuracy=math.nan), "has nan as its accuracy"),
        (lambda cases: cases[0].update(expires="2026-13-01"), "month must be in 1..12"),
        (lambda cases: cases[0]["case"].update(dtype="fp32"), f"{CASE.id} is the id of an entry whose case is"),
        (_is_there_twice, f"{CASE.label} is there twice"),
    ],
)
def test_a_file_that_was_edited_or_merged_badly_is_damage(
    tmp_path: Path, change: Callable[[list[dict[str, Any]]], object], told: str
) -> None:
    """A step time edited to ten times its value would hide a slowdown, and any accuracy passes against NaN."""
    path = write(tmp_path, KNOWN)
    document = json.loads(path.read_text())
    change(document["cases"])
    path.write_text(json.dumps(document))
    with pytest.raises(BaselineError) as caught:
        read(tmp_path, KEY)
    assert str(caught.value).startswith(f"{path} is damaged (")
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_environment_that_was_edited_by_hand_is_damage(tmp_path: Path) -> None:
    """With other cores or threads in the file, times of another machine would be comparable."""
    path = write(tmp_path, KNOWN)
    path.write_text(path.read_text().replace('"threads": 2', '"threads": 4'))
    with pytest.raises(BaselineError, match="is not what its run recorded: it was edited"):
        read(tmp_path, KEY)


def test_a_folder_lists_its_machine_keys(tmp_path: Path) -> None:
    """Files that an editor leaves there are ignored. A path that is a file is refused."""
    assert machine_keys(tmp_path / "nowhere") == []
    for name in (f"{KEY}.json", "epyc.json", ".epyc.json", "README.md"):
        (tmp_path / name).write_text("")
    assert machine_keys(tmp_path) == ["epyc", KEY]
    (tmp_path / f"{KEY}.json").unlink()
    write(tmp_path, Baselines("epyc", ()))
    assert every(tmp_path) == [Baselines("epyc", ())]
    with pytest.raises(BaselineError, match=r"README\.md cannot be read as a folder of baselines"):
        machine_keys(tmp_path / "README.md")


def test_a_machine_key_cannot_leave_the_folder(tmp_path: Path) -> None:
    with pytest.raises(BaselineError, match="cannot name a file"):
        read(tmp_path, "../secret")


@pytest.mark.parametrize(
    "planted",
    [
        {"source": {"../../../.bashrc": "0"}},
        {"source": {"/../.bashrc": "0"}},
        {"source_paths": ["../.."]},
        {"lock": "../../secret"},
        {"lock": "/../secret"},
        {"lock": "linked"},
    ],
)
def test_a_baseline_names_no_file_outside_its_folders(tmp_path: Path, planted: dict[str, Any]) -> None:
    """A text of the user's own was a lock whose first line a message showed."""
    folder = tmp_path / "deep" / "baselines"
    (tmp_path / "secret.txt").write_text("my own")
    (folder / "locks").mkdir(parents=True)
    (folder / "locks" / "linked.txt").symlink_to(tmp_path / "secret.txt")
    path = write(folder, Baselines(KEY, (baseline(where={**ENVIRONMENT, **planted}),)))
    with pytest.raises(BaselineError, match=r"names no file inside a folder|is a link or something else") as caught:
        read(folder, KEY)
    assert str(caught.value).startswith(f"{path}: ")


def test_a_baseline_that_is_a_link_is_not_read(tmp_path: Path) -> None:
    write(tmp_path / "elsewhere", KNOWN)
    (tmp_path / f"{KEY}.json").symlink_to(tmp_path / "elsewhere" / f"{KEY}.json")
    with pytest.raises(UsageError, match="is a link or something else"):
        read(tmp_path, KEY)


@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.lists(st.floats(1e-6, 1e4), min_size=2, max_size=5), min_size=1, max_size=4),
    st.text(min_size=1).filter(lambda text: text.strip() and text.isprintable()),
)
def test_a_baseline_survives_write_and_read_and_a_rewrite_changes_no_byte(
    tmp_path: Path, sessions: list[list[float]], reason: str
) -> None:
    cases = [candidate(times, run, case=replace(CASE, batch=run)) for run, times in enumerate(sessions, start=1)]
    accepted = offered(EMPTY, *cases, reason=reason).baselines
    path = write(tmp_path, accepted)
    first = path.read_bytes()
    again = read(tmp_path, KEY)
    assert again == accepted
    assert write(tmp_path, again).read_bytes() == first
    assert dumps(Baselines(KEY, tuple(reversed(again.cases)))).encode() == first
    assert [x.name for x in tmp_path.iterdir()] == [path.name]


def test_the_file_is_readable_text() -> None:
    text = dumps(offered(EMPTY, candidate((0.012345678, 0.0123), 1)).baselines)
    assert text.endswith("}\n")
    assert '"launches": [0.0123457, 0.0123]' in text
    assert json.loads(text)["cases"][0]["id"] == "resnet50-cpu-bf16-infer_jit-ipex"
    assert text.count('"torch": "2.8.0"') == 1
    assert max(map(len, text.splitlines())) <= 120


def test_accepting_needs_a_reason() -> None:
    with pytest.raises(BaselineError, match="needs a reason"):
        offered(EMPTY, candidate(TIMES), reason="  ")


def test_an_expiry_is_a_date() -> None:
    with pytest.raises(BaselineError, match="must be a date"):
        offered(EMPTY, candidate(TIMES), expires="soon")
    [accepted] = offered(EMPTY, candidate(TIMES), expires="2026-12-31").baselines.cases
    assert accepted.expired("2027-01-01T00:00")


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"outcome": "failed", "reason": "crashed"}, "it is failed: crashed"),
        ({"outcome": "invalid", "reason": "proof failed"}, "it is invalid: proof failed"),
        ({"contended": "steal 12 %"}, "(steal 12 %): measure it again, or accept it with --contended-ok"),
        ({"outcome": "regressed", "ratio": 1.2}, "20.0 % slower"),
        ({"outcome": "platform_shift", "ratio": 1.2}, "20.0 % slower"),
        ({"outcome": "inconclusive", "ratio": 1.2}, "may be 20.0 % slower"),
        ({"environment": {**ENVIRONMENT, "machine_key": "epyc"}}, "measured on epyc"),
        ({"environment": environment(hardware={"threads": 4})}, "threads: 2 -> 4"),
        ({"metrics": {"step_time": (0.01,)}}, "1 launches"),
        ({"metrics": {"step_time": (0.01, 0.0)}}, "of 0 or less"),
        ({"metrics": {"step_time": TIMES, "accuracy": (0.7,)}}, "accuracy changed"),
        ({"run": "run1"}, "run run1 is in the baseline already"),
        ({"outcome": "inconclusive", "ratio": 1.0, "environment": environment(software={"torch": "2.9"})}, "torch"),
        ({"case": replace(CASE, version=2)}, "version: 1 -> 2"),
        ({"case": replace(CASE, knobs=(("against", "stack=stock"),))}, "in pairs with another arm (stack=stock)"),
    ],
)
def test_a_refused_candidate_has_a_reason_and_changes_nothing(changes: dict[str, object], why: str) -> None:
    result = offered(KNOWN, candidate(TIMES, 20, **changes))
    assert result.candidates == []
    assert why in result.refused[0][1]
    assert result.baselines == KNOWN


@pytest.mark.parametrize("replacing", [False, True])
def test_an_accepted_regression_or_an_improvement_starts_the_sessions_anew(replacing: bool) -> None:  # noqa: FBT001
    slow = candidate([x * 2 for x in TIMES], 20, outcome="regressed", ratio=2.0)
    result = offered(KNOWN, slow, regression_ok=True, replace=replacing)
    assert runs(result) == ["run20"]
    assert runs(offered(KNOWN, candidate(TIMES, 20, outcome="improved", ratio=0.5))) == ["run20"]
    assert result.baselines.cases[0].accuracy == {"accuracy": 0.9}


def test_replacing_drops_the_old_sessions_but_still_refuses_a_slowdown() -> None:
    assert runs(offered(KNOWN, candidate(TIMES, 20, outcome="ok", ratio=1.0), replace=True)) == ["run20"]
    threads = candidate(TIMES, 20, outcome="not_comparable", environment=environment(hardware={"threads": 4}))
    assert runs(offered(KNOWN, threads, replace=True)) == ["run20"]
    slow = candidate(TIMES, 20, outcome="inconclusive", ratio=1.2)
    assert offered(KNOWN, slow, replace=True).candidates == []


def test_the_twelve_newest_sessions_are_kept() -> None:
    many = [candidate(TIMES, run, outcome="ok", ratio=1.0) for run in range(1, 16)]
    assert runs(offered(EMPTY, *many)) == [f"run{run}" for run in range(4, 16)]


def test_two_batches_of_one_case_live_side_by_side() -> None:
    bigger = replace(CASE, batch=16)
    both = offered(KNOWN, candidate(TIMES, 20, case=bigger)).baselines
    assert [x.case.inputs["batch"] for x in both.cases] == [8, 16]
    found = both.find(bigger)
    assert found is not None
    assert found.case == bigger
    closest = KNOWN.find(bigger)
    assert closest is not None
    assert closest.case == CASE
    assert KNOWN.find(replace(CASE, dtype="fp32")) is None


def test_a_diff_shows_the_slowdown_that_it_allows() -> None:
    bigger = replace(CASE, batch=16)
    slow = offered(
        KNOWN,
        candidate([x * 2 for x in TIMES], 20, outcome="regressed", ratio=2.0),
        candidate(TIMES, 21, case=bigger),
        candidate(TIMES, 21, case=FunctionCase("test_it.py::test_it", "cpu")),
        regression_ok=True,
    ).baselines
    rows = diff(KNOWN, slow)
    assert [x.case for x in rows] == [CASE.label, bigger.label, "test_it.py::test_it"]
    assert [(x.kind, x.sessions) for x in rows] == [("replaced", "3 -> 1"), *[("added", "0 -> 1")] * 2]
    assert rows[0].ratio == pytest.approx(2.0, rel=0.02)
    assert [x.kind for x in diff(slow, KNOWN)] == ["replaced", "removed", "removed"]
    more = offered(KNOWN, candidate(TIMES, 20, outcome="ok", ratio=1.0)).baselines
    assert [x.kind for x in diff(KNOWN, more)] == ["extended"]
    assert diff(KNOWN, KNOWN) == []


def test_the_digest_of_a_fingerprint_is_stored_and_a_file_without_it_is_read(tmp_path: Path) -> None:
    """An entry has version and digest on one line. An old file lacks them and has the same format."""
    plain = offered(EMPTY, candidate(TIMES, 1)).baselines
    named = offered(EMPTY, candidate(TIMES, 1, fingerprint="1:abc")).baselines
    for known, expected in ((plain, None), (named, "1:abc")):
        assert ('"fingerprint"' in write(tmp_path, known).read_text()) == bool(expected)
        assert [x.fingerprint for x in read(tmp_path, known.machine_key).cases] == [expected]
    assert named.cases[0].sessions == plain.cases[0].sessions


def test_a_new_session_replaces_the_digest() -> None:
    """If the new session captured none, the old digest stays."""
    first = offered(EMPTY, candidate(TIMES, 1, fingerprint="1:abc")).baselines
    other = candidate(TIMES, 2, outcome="ok", ratio=1.0, fingerprint="1:other")
    assert offered(first, other).baselines.cases[0].fingerprint == "1:other"
    assert offered(first, candidate(TIMES, 2)).baselines.cases[0].fingerprint == "1:abc"
    assert offered(first, candidate(TIMES, 2), replace=True).baselines.cases[0].fingerprint is None


def test_an_inconclusive_session_of_other_kernels_is_refused() -> None:
    """A network of the user's own may have changed under its name. Fingerprints of two versions cannot be compared."""
    first = offered(EMPTY, candidate(TIMES, 1, fingerprint="1:abc")).baselines
    other = candidate(TIMES, 2, outcome="inconclusive", ratio=1.0, fingerprint="1:other")
    refused = offered(first, other).refused
    assert refused == [(CASE.id, "it is inconclusive and ran other kernels than the baseline: replace the baseline")]
    assert runs(offered(first, other, replace=True)) == ["run2"]
    assert runs(offered(first, replace(other, fingerprint="2:other"))) == ["run1", "run2"]
    assert runs(offered(first, replace(other, fingerprint="1:abc"))) == ["run1", "run2"]


def test_an_older_run_that_joins_later_leaves_environment_and_digest() -> None:
    """Environment, lock and digest are those of the newest session, in whatever order sessions were accepted."""
    old, new = (environment(software={"torch": torch}) | {"lock": lock} for torch, lock in (("2.8", "a"), ("2.9", "b")))
    first = offered(EMPTY, candidate(TIMES, 2, fingerprint="1:new", environment=new)).baselines
    older = candidate(TIMES, 1, outcome="ok", ratio=1.0, fingerprint="1:old", environment=old)
    result = offered(first, older)
    assert runs(result) == ["run1", "run2"]
    [one] = result.baselines.cases
    assert (one.environment["software"]["torch"], one.lock, one.fingerprint) == ("2.9", "b", "1:new")


def test_a_run_older_than_a_full_baseline_is_refused() -> None:
    """Accepting it would report success and store nothing."""
    full = offered(EMPTY, *(candidate(TIMES, run, outcome="ok", ratio=1.0) for run in range(2, 14))).baselines
    result = offered(full, candidate(TIMES, 1, outcome="ok", ratio=1.0))
    assert (result.candidates, result.baselines) == ([], full)
    assert result.refused == [(CASE.id, "it is older than the 12 sessions that a baseline keeps")]


HELD = 4e8


def with_memory(number: int, memory: float, times: tuple[float, ...] = TIMES, **changes: object) -> object:
    """A candidate that keeps this much memory."""
    accepted = candidate(times, number, **changes)
    return replace(accepted, metrics={**accepted.metrics, "held_memory": (memory,)})


def memories(result: Acceptance) -> list[float | None]:
    return [session.metrics.get("held_memory") for session in result.baselines.cases[0].sessions]


def test_more_memory_is_accepted_only_on_request_and_begins_a_new_level() -> None:
    """Its sessions still count for speed. The memory of the older ones is dropped."""
    three = offered(EMPTY, *(with_memory(number, HELD) for number in (1, 2, 3))).baselines
    larger = with_memory(4, 1.02 * HELD)
    refused = offered(three, larger)
    assert refused.refused == [(CASE.id, "its held_memory regressed: accept it with --regression-ok")]
    assert memories(refused) == [HELD] * 3
    accepted = offered(three, larger, regression_ok=True)
    assert memories(accepted) == [None, None, None, pytest.approx(1.02 * HELD)]
    assert runs(accepted) == ["run1", "run2", "run3", "run4"]


def test_less_memory_begins_a_new_level_without_a_request() -> None:
    three = offered(EMPTY, *(with_memory(number, HELD) for number in (1, 2, 3))).baselines
    assert memories(offered(three, with_memory(4, 0.98 * HELD))) == [
        None,
        None,
        None,
        pytest.approx(0.98 * HELD),
    ]
    assert memories(offered(three, with_memory(4, HELD))) == [HELD] * 4


def test_a_regression_of_a_metric_added_to_the_gate_is_refused_too() -> None:
    """`--perf-gate compile_time` failed the test of this case. Accepting it silently would hide that."""
    known = offered(EMPTY, with_memory(1, HELD)).baselines
    slower_to_compile = with_memory(2, HELD, worse="compile_time")
    assert offered(known, slower_to_compile).refused[0][1] == (
        "its compile_time regressed: accept it with --regression-ok"
    )
