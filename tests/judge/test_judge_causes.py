"""Known causes: each fits where its signature is and nowhere else, and users add their own."""

from typing import Any

import pytest
from judge_records import CONVOLUTION, captured, compiled, processor

from ipexperf import ext
from ipexperf.proof import causes, losses

REORDER = {**CONVOLUTION, "primitive": "reorder", "implementation": "jit:uni", "calls": 2}


def names(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    return [cause.name for cause in causes.known(old, new)]


FOUND = {
    "other work": (
        captured(beside={"work": {"step_flops": 100, "items": 1}}),
        captured(beside={"work": {"step_flops": 190, "items": 1}}),
    ),
    "fewer threads": (captured(processor=processor(threads=8)), captured(processor=processor(threads=4))),
    "a plain reorder": (
        captured(primitives=[REORDER]),
        captured(primitives=[REORDER, {**REORDER, "implementation": "simple:any"}]),
    ),
    "recompilation": (captured(compiled=compiled()), captured(compiled=compiled(graphs=3, frames=3))),
    "allocates more": (
        captured(beside={"memory": {"allocated": 100}}),
        captured(beside={"memory": {"allocated": 200}}),
    ),
    "more kernels": (captured(beside={"counts": {"kernels": 10}}), captured(beside={"counts": {"kernels": 30}})),
    "more Python": (captured(beside={"python": {"calls": 10}}), captured(beside={"python": {"calls": 100}})),
}


@pytest.mark.parametrize("name", FOUND)
def test_a_cause_fits_where_its_signature_is_and_not_the_other_way_round(name: str) -> None:
    old, new = FOUND[name]
    assert names(old, new) == [name]
    assert names(new, old) == []
    assert names(old, old) == []


def test_a_loss_is_a_cause_by_its_kind() -> None:
    weaker = {**CONVOLUTION, "implementation": "brg_conv_fwd:avx2"}
    assert names(captured(primitives=[CONVOLUTION]), captured(primitives=[weaker])) == ["weaker instructions"]


def test_each_kind_of_loss_has_a_cause() -> None:
    kinds = {
        value for name, value in vars(losses).items() if name.isupper() and isinstance(value, str) and name[0] != "_"
    }
    assert {cause.signature for cause in causes.CAUSES.values() if isinstance(cause.signature, str)} == kinds


def test_fingerprints_that_cannot_be_compared_have_no_cause() -> None:
    old, new = FOUND["allocates more"]
    assert names(old, {**new, "version": 2}) == []
    assert causes.known(None, new) == []


def test_a_user_adds_a_cause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(causes, "CAUSES", dict(causes.CAUSES))
    cold = ext.Cause("our cache is cold", lambda _, new: "cache" in new["beside"], "warm it first", "wiki")
    ext.register(cold)
    assert names(captured(), captured(beside={"cache": {}})) == ["our cache is cold"]
