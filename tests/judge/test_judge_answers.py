"""Sketches of answers: how far two are apart, and what that does to a verdict and to an acceptance."""

import base64
import struct
from pathlib import Path
from typing import Any

import pytest
from judge_records import QUIET, baseline, candidate

from ipexperf.errors import BaselineError
from ipexperf.judge.accept import Acceptance, accept
from ipexperf.judge.baseline import Baselines, dumps, read, write
from ipexperf.proof.answers import Difference, common, difference, named, uncompared
from ipexperf.ratio import Ratio
from ipexperf.verdict import Verdict


def sketch(*values: float, weights: str = "", **changes: Any) -> dict[str, Any]:
    """The sketch of answers with these numbers."""
    text = base64.b64encode(struct.pack(f"<{len(values)}d", *values)).decode()
    part = {"at": "result", "is": f"{len(values)} float64", "shape": [len(values)], "bound": 1e-4, "values": text}
    return {"parts": [{**part, **changes}], "weights": weights}


BF16 = {"bound": 0.03, "told": 1e-4}
ACCEPTED, IN_BF16 = sketch(3.0, 4.0), sketch(3.0, 4.0, **BF16)


@pytest.mark.parametrize(
    ("before", "now", "text", "fails"),
    [
        (ACCEPTED, ACCEPTED, "", False),
        (ACCEPTED, sketch(3.0, 4.00001), "", False),
        (ACCEPTED, sketch(3.0, 4.6), "its answers changed: result[1]: 4 -> 4.6 (bound 0.01 %)", True),
        (ACCEPTED, sketch(3.0, 4.1, **BF16), "result[1]: 4 -> 4.1 (bound 0.01 %)", True),
        (IN_BF16, sketch(3.0, 4.1, **BF16), "changed, as its dtype allows: result[1]: 4 -> 4.1 (bound 0.01 %)", False),
        (IN_BF16, sketch(3.0, 4.6, **BF16), "its answers changed: result[1]: 4 -> 4.6 (bound 3 %)", True),
        (ACCEPTED, sketch(3.0, 4.0, 5.0), "its answers changed: 2 float64 -> 3 float64", True),
        (ACCEPTED, sketch(9.0, weights="other"), "its weights were trained another time", False),
        (ACCEPTED, None, "", False),
    ],
)
def test_other_answers_are_named_and_fail_beyond_the_bound_of_the_dtype(
    before: dict[str, Any],
    now: dict[str, Any] | None,
    text: str,
    fails: bool,  # noqa: FBT001
) -> None:
    found = difference(before, now)
    assert (text in found.text, bool(found.text), found.fails) == (True, bool(text), fails)


def test_a_small_number_may_be_off_by_what_its_large_neighbours_are() -> None:
    """It may be what is left of such numbers."""
    assert not difference(sketch(1e3, 1e-6), sketch(1e3 + 0.001, 5e-4)).text
    assert difference(sketch(1e3, 1e-6), sketch(1e3, 5e-4)).fails
    assert difference(sketch(1e3, 1e-6), sketch(1e3 + 0.001, 0.9)).fails


def test_what_processes_of_one_software_do_not_share_is_compared_with_nothing() -> None:
    near, far = sketch(3.0, 4.0001), sketch(3.0, 4.6)
    assert common([None, ACCEPTED, near]) == {**ACCEPTED, "processes": 2}
    varying = common([ACCEPTED, near, far])
    assert uncompared(varying) == "it is another one in each process"
    assert difference(varying, sketch(8.0)) == Difference()
    assert common([None]) is None


def test_one_process_of_each_side_does_not_tell_other_results_of_a_function() -> None:
    """They may be random. Two that agree tell."""
    before, now = ({**one, "processes": 1} for one in (ACCEPTED, sketch(3.0, 4.6)))
    alone = difference(before, now)
    assert (alone.fails, alone.compared, "in each process" in alone.text) == (False, False, True)
    assert difference(before, common([now, now])).fails


CHANGED = Difference("its answers changed", fails=True)


def test_other_answers_make_a_case_invalid_and_keep_its_speed() -> None:
    verdict = named(Verdict("ok", "no slower", ratio=Ratio(1.01)), CHANGED)
    assert (verdict.outcome, verdict.reason, verdict.fails) == ("invalid", "its answers changed", True)
    assert (verdict.alone.outcome, verdict.alone.reason, verdict.times) == ("ok", "no slower", 1.01)


def test_a_slower_case_stays_regressed_and_names_its_answers_too() -> None:
    verdict = named(Verdict("regressed", "20 % slower"), CHANGED)
    assert (verdict.outcome, verdict.reason) == ("regressed", "20 % slower; its answers changed")


KNOWN = Baselines("xeon-2c", (baseline(answers=ACCEPTED),))
OTHER = candidate(QUIET[0], 20, outcome="ok", ratio=1.0, answers=sketch(3.0, 4.6))


def accepted(*, regression_ok: bool = False) -> Acceptance:
    return accept(KNOWN, [OTHER], reason="meant", by="ada", now="2026-02-01", regression_ok=regression_ok)


def test_other_answers_are_accepted_only_if_that_is_said_and_then_start_the_sessions_anew() -> None:
    refused = accepted().refused[0][1]
    assert refused == "its answers changed: result[1]: 4 -> 4.6 (bound 0.01 %): accept it with --regression-ok"
    [case] = accepted(regression_ok=True).baselines.cases
    assert (case.answers, [session.run for session in case.sessions]) == (OTHER.answers, ["run20"])


def test_a_baseline_keeps_the_answers_that_were_accepted_first() -> None:
    """Or they could drift in steps below the bound."""
    near = candidate(QUIET[0], 20, outcome="ok", ratio=1.0, answers=sketch(3.0, 4.0001))
    [case] = accept(KNOWN, [near], reason="again", by="ada", now="2026-02-01").baselines.cases
    assert (case.answers, len(case.sessions)) == (ACCEPTED, 4)


def test_a_file_of_baselines_keeps_answers_and_refuses_damaged_ones(tmp_path: Path) -> None:
    path = write(tmp_path, KNOWN)
    [case] = read(tmp_path, "xeon-2c").cases
    assert difference(ACCEPTED, case.answers) == Difference()
    path.write_text(dumps(KNOWN).replace(ACCEPTED["parts"][0]["values"], "AAAA"))
    with pytest.raises(BaselineError, match="a sketch of answers is damaged"):
        read(tmp_path, "xeon-2c")
