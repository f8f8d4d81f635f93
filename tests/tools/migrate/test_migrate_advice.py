"""The advice of a migration, and the changes to a script."""

from __future__ import annotations

import ast
import dataclasses
import itertools
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from migrate_records import findings_of, measured, plan, row, seconds

from ipexperf.bench import registry
from ipexperf.bench.api import TRAINING, Cell
from ipexperf.bench.machine.facts import Facts
from ipexperf.dtypes import DTYPES
from ipexperf.plan import knobs, matrix
from ipexperf.tools.migrate import advice
from ipexperf.tools.migrate import plan as migration


def told(lines: list[str], subject: str) -> str:
    [line] = [line for line in lines if line.startswith(subject)]
    return line


def test_each_row_has_a_sentence() -> None:
    lines = advice.advice(findings_of(plan()))
    spin = told(lines, "fp32 on old, spin: ")
    assert spin.startswith("fp32 on old, spin: fp32 on new, whirl, is 2.00 (")
    assert spin.endswith(" times as fast: move")
    assert told(lines, "fp32 on old, teach: ").endswith("moving costs speed")
    own = told(lines, "fp32 on old, teach, with update=own: ")
    assert own.endswith("has no equal: own comes with old: new has none. Keep it where it is, or do without")


def test_the_lack_of_an_equal_comes_before_the_best_replacement() -> None:
    line = told(advice.advice(findings_of(plan())), "fp32 on old, streamed: ")
    assert line.startswith("fp32 on old, streamed: new has no streams; instead, fp32 on new, whirl, is 2.0")


@pytest.mark.parametrize(("modes", "said"), [(("spin", "teach"), 1), (("spin",), 0)])
def test_training_that_cannot_be_compared_has_one_sentence(
    modes: tuple[str, ...], said: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as that of a network with an unknown loss, with what to do. Not if only inference was asked for."""
    tiny = dataclasses.replace(registry.models.get("tiny"), why_nots={TRAINING: "its loss is not known: write one"})
    monkeypatch.setitem(registry.models._items, "tiny", tiny)
    lines = advice.advice(findings_of(plan(mode=modes)))
    assert lines.count("training was not compared: its loss is not known: write one") == said
    assert sum("training was not compared" in line for line in lines) == said


def test_a_row_whose_old_case_was_not_measured_gets_no_advice() -> None:
    made = plan(mode=("spin",))
    line = told(advice.advice(findings_of(made, changed={made.rows[0].case: None})), "fp32 on old, spin: ")
    assert line == "fp32 on old, spin: not known: old: its round was not made"


def test_a_row_that_was_never_begun_has_no_sentence() -> None:
    made = plan(mode=("spin",))
    lines = advice.advice(findings_of(made, changed=dict.fromkeys(made.cases)))
    assert [line for line in lines if line.startswith("fp32 on old")] == []


def test_the_sentence_on_speed_names_lower_accuracy_and_more_memory() -> None:
    made = plan(mode=("spin",))
    [case] = made.rows[0].candidates
    changed = {case: measured(case, seconds(case), accuracy=0.9, peak_memory=3 * 2.0**20)}
    line = told(advice.advice(findings_of(made, changed=changed)), "fp32 on old, spin: ")
    assert "its accuracy is 8.0 points lower, more than rounding explains: do not move unchecked" in line
    assert line.endswith("it takes 3.00 times the memory")


def test_a_lower_accuracy_after_a_short_training_is_called_a_doubt() -> None:
    """Rounding alone changes where a training ends."""
    made = plan(mode=("teach",))
    case = next(case for one in made.rows for case in one.candidates if case.mode == "teach")
    changed = {case: measured(case, seconds(case), accuracy=0.9)}
    line = told(advice.advice(findings_of(made, changed=changed)), "fp32 on old, teach: ")
    assert "its accuracy is 8.0 points lower, after one short training each, which rounding alone can move" in line


@pytest.mark.parametrize(
    ("left_out", "words"),
    [
        (
            ("old", "new"),
            "; neither was trained to the end, so their accuracy was not compared: give it more --minutes",
        ),
        (("new",), "; fp32 on new, teach, was not trained to the end, so their accuracy was not compared: "),
    ],
)
def test_a_training_that_was_only_timed_says_so(left_out: tuple[str, ...], words: str) -> None:
    made = plan(mode=("teach",))
    cases = [case for case in made.cases if case.stack in left_out and "update" not in dict(case.knobs)]
    changed = {case: measured(case, seconds(case), checked=False) for case in cases}
    assert words in told(advice.advice(findings_of(made, changed=changed)), "fp32 on old, teach: ")


@pytest.mark.parametrize(
    ("off", "words"),
    [(0.013, "worth having: 1.30"), (0.01, "no difference that was seen"), (0.008, "costs time")],
)
def test_a_setting_that_the_new_stack_lacks_has_a_sentence_with_its_effect(off: float, words: str) -> None:
    findings = findings_of(plan(), lambda case: off if ("packed", "off") in case.knobs else 0.01)
    line = told(advice.advice(findings), "packed (")
    assert line.startswith("packed (weights laid out for their kernels): only old has this setting")
    assert words in line


def test_a_setting_that_was_not_measured_says_so() -> None:
    made = plan()
    [setting] = made.settings
    findings = findings_of(made, changed={setting.off: None})
    assert told(advice.advice(findings), "packed (").endswith("what it is worth was not measured")


def test_the_change_to_a_script_leads_from_the_old_to_the_best() -> None:
    patches = {one.title: one.lines for one in advice.patches(findings_of(plan()))}
    assert patches["fp32 on old, teach -> fp32 on new, teach"] == (
        "- import old",
        "- model = old.optimise(model)",
        "  update = plain()",
    )
    assert patches["fp32 on old, streamed -> fp32 on new, whirl"] == (
        "- import old",
        "- model = old.optimise(model)",
        "- outputs = old.streams(model)(*inputs)",
        "+ model = new.compile(model)",
        "+ outputs = model(*inputs)",
    )


def test_a_mode_without_a_script_has_no_change() -> None:
    """Such as the mode `spin` of the fakes."""
    titles = [one.title for one in advice.patches(findings_of(plan()))]
    assert not any(title.startswith("fp32 on old, spin") for title in titles)
    assert row(findings_of(plan()), "spin").best is not None


LINES = st.lists(st.sampled_from(["a = 1", "b = 2", "    c(a)", "with x:"]), min_size=1, max_size=8)


@given(LINES, LINES)
def test_a_change_contains_both_scripts(old: list[str], new: list[str]) -> None:
    """Without the lines that are added it is the old script, and without those that are removed the new one."""
    lines = advice.changed(old, new)
    assert [line[2:] for line in lines if line[0] in "- "] == old
    assert [line[2:] for line in lines if line[0] in "+ "] == new


EVERYTHING = Facts(
    "/env/bin/python",
    dict.fromkeys(("torch", "torchvision", "torchao", "intel-extension-for-pytorch"), "2.8.0"),
    frozenset({"avx2", "avx512bw", "avx512vl", "avx512dq", "avx512_bf16", "avx512_vnni", "avx512_fp16"}),
    cores=2,
    compiler="g++",
    iomp5="libiomp5.so",
    pt2e={"cpu": "torchao"},
)


def shipped() -> Iterator[Cell]:
    """The cells of three networks that can run, in all modes and stacks, with each setting of both."""
    for axes in itertools.product(
        ("resnet18", "llama_135m", "dlrm"), ("cpu",), DTYPES, registry.modes.names(), ("ipex", "stock")
    ):
        plain = Cell(*axes)
        settings = [((knob.name, value),) for knob in knobs.of(plain).values() for value in knob.values]
        for setting in [(), *settings]:
            cell, reason = knobs.turned(plain, setting, EVERYTHING)
            if not reason and matrix.why_not(cell, EVERYTHING) is None:
                yield cell


def test_every_shipped_script_is_python() -> None:
    """For each mode, stack, dtype and setting. Only IPEX's scripts import IPEX."""
    seen = set()
    for cell in shipped():
        mode, stack = registry.modes.get(cell.mode), registry.stacks.get(cell.stack)
        lines = mode.script(cell, stack)
        ast.parse("\n".join(lines))
        text = "\n".join(lines)
        if lines and cell.knob("optimizer") != "lamb":
            assert ("intel_extension_for_pytorch" in text) == (cell.stack == "ipex"), cell
        seen |= {cell.mode} if lines else set()
    assert {"infer", "infer_jit", "infer_compile", "infer_export", "train", "multistream", "decode"} <= seen


def test_the_script_of_a_model_comes_first() -> None:
    """It replaces modules before the network is optimised."""
    case = migration.Case("dlrm", "cpu", "fp32", "infer", "ipex", 512, 32)
    assert any("MergedEmbeddingBag" in line for line in advice.script(case)[:3])
