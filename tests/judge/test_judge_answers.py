"""Sketches of answers: how far two are apart, and what that does to a verdict and to an acceptance."""

from __future__ import annotations

import base64
import math
import struct
from pathlib import Path
from typing import Any

import pytest
from judge_records import QUIET, baseline, candidate

from ipexperf.errors import BaselineError
from ipexperf.judge.accept import Acceptance, accept
from ipexperf.judge.answers import Difference, common, difference, distance, named
from ipexperf.judge.baseline import Baselines, dumps, read, write
from ipexperf.result import Verdict


def sketch(*sums: float, **changes: Any) -> dict[str, Any]:
    """The sketch of answers with these sums; the others are 0."""
    norm = math.hypot(*sums)
    data = struct.pack("<64f", *(value / norm if norm else 0.0 for value in sums), *[0.0] * (64 - len(sums)))
    text = base64.b64encode(data).decode()
    return {"shapes": ["2x3"], "norm": norm, "sums": text, "bound": 1e-4, "weights": "", **changes}


ACCEPTED = sketch(3.0, 4.0)
BF16 = {"bound": 0.03}


@pytest.mark.parametrize(
    ("now", "text", "fails"),
    [
        (ACCEPTED, "", False),
        (sketch(3.0, 4.00001), "", False),
        (sketch(3.0, 4.6), "its answers changed: 12% from the baseline's (bound 0.01%)", True),
        (sketch(3.0, 4.1, **BF16), "its answers are 2% from the baseline's, which its dtype allows", False),
        (sketch(3.0, 4.6, **BF16), "its answers changed: 12% from the baseline's (bound 3%)", True),
        (sketch(3.0, 4.0, shapes=["2x4"]), "its answers changed: 2x3 -> 2x4", True),
        (sketch(9.0, weights="other"), "its weights were trained another time", False),
        (None, "", False),
    ],
)
def test_other_answers_are_named_and_fail_beyond_the_bound_of_the_dtype(
    now: dict[str, Any] | None,
    text: str,
    fails: bool,  # noqa: FBT001
) -> None:
    found = difference(ACCEPTED, now)
    assert (text in found.text, bool(found.text), found.fails) == (True, bool(text), fails)


def test_answers_that_processes_of_one_software_do_not_share_are_nobodys() -> None:
    near, far = sketch(3.0, 4.0001, **BF16), sketch(3.0, 4.6, **BF16)
    assert common([None, ACCEPTED, near]) == ACCEPTED
    assert common([ACCEPTED, near, far]) is None
    assert common([None]) is None


def test_answers_of_nothing_but_zeros_are_infinitely_far_from_any_others() -> None:
    assert distance(sketch(0.0), sketch(0.0)) == 0
    assert distance(sketch(0.0), ACCEPTED) == math.inf
    assert difference(sketch(0.0), ACCEPTED).fails


CHANGED = Difference("its answers changed", fails=True)


def test_other_answers_make_a_case_invalid_and_keep_its_speed() -> None:
    verdict = named(Verdict("ok", "no slower", ratio=1.01), CHANGED)
    assert (verdict.outcome, verdict.reason, verdict.fails) == ("invalid", "its answers changed; no slower", True)
    assert (verdict.alone.outcome, verdict.alone.reason, verdict.ratio) == ("ok", "no slower", 1.01)


def test_a_slower_case_stays_regressed_and_names_its_answers_too() -> None:
    verdict = named(Verdict("regressed", "20% slower"), CHANGED)
    assert (verdict.outcome, verdict.reason) == ("regressed", "20% slower; its answers changed")


KNOWN = Baselines("xeon-2c", (baseline(answers=ACCEPTED),))
OTHER = candidate(QUIET[0], 20, outcome="ok", ratio=1.0, answers=sketch(3.0, 4.6))


def accepted(*, regression_ok: bool = False) -> Acceptance:
    return accept(KNOWN, [OTHER], reason="meant", by="ada", now="2026-02-01", regression_ok=regression_ok)


def test_other_answers_are_accepted_only_if_that_is_said_and_then_start_the_sessions_anew() -> None:
    refused = accepted().refused[0][1]
    assert refused == "its answers changed: 12% from the baseline's (bound 0.01%): accept it with --regression-ok"
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
    path.write_text(dumps(KNOWN).replace(ACCEPTED["sums"], "AAAA"))
    with pytest.raises(BaselineError, match="a sketch of answers is damaged"):
        read(tmp_path, "xeon-2c")
