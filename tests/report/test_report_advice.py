"""What a newcomer reads first: the best configuration, what each choice is worth, and what may not be claimed."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_records import crashed, golden, measurement, out_of_budget, together

from ipexperf.case import Case
from ipexperf.judge.policy import Policy
from ipexperf.report.advice import BRACKETS, NO_TURNS, advice
from ipexperf.report.speeds import Speeds
from ipexperf.report.table import TWIN, summary_lines
from ipexperf.result import Launch, Measurement, RoundRecord, Verdict

PLAIN = Case("resnet18", "cpu", "fp32", "infer", "stock", 32, 32, data="digits")
TRACED = replace(PLAIN, mode="infer_jit")
BEST = replace(TRACED, dtype="bf16", stack="ipex")
INT8 = replace(BEST, dtype="int8")
TRAIN = replace(PLAIN, mode="train", batch=64)
STEPS = {
    PLAIN: 0.0114,
    TRACED: 0.0108,
    replace(TRACED, dtype="bf16"): 0.0064,
    replace(TRACED, stack="ipex"): 0.0063,
    BEST: 0.00375,
}
TRAINED = {TRAIN: 0.078, replace(TRAIN, stack="ipex"): 0.0573, replace(TRAIN, stack="ipex", dtype="bf16"): 0.0497}
NONE_YET = {case.uid: Verdict("no_baseline", "") for case in (*STEPS, INT8, *TRAINED)}


def measured(steps: dict[Case, float], accuracy: float = 0.918) -> list[Measurement]:
    return [measurement(case, step, accuracy=accuracy) for case, step in steps.items()]


def told(
    measurements: list[Measurement],
    rounds: list[RoundRecord] | None = None,
    verdicts: dict[str, Verdict] | None = None,
) -> list[str]:
    """The advice, with what every pair of cases would have had in rounds."""
    shared = together(measurements) if rounds is None and len(measurements) > 1 else rounds or []
    return advice(Speeds.of(measurements, verdicts or {}, shared), verdicts or NONE_YET)


def training() -> list[Measurement]:
    return measured(TRAINED, 0.961)


def test_cases_in_different_parts_of_a_group_are_compared_through_its_reference() -> None:
    """Neither shared a round with the other; both did with stock fp32. Nothing is told from launches."""
    first, second = together(measured({PLAIN: 0.0114, BEST: 0.004})), together(measured({PLAIN: 0.0114, INT8: 0.002}))
    parts = [
        replace(one, seats=tuple(replace(seat, role="reference") if seat.case == PLAIN else seat for seat in one.seats))
        for one in second
    ]
    speeds = Speeds.of(measured({PLAIN: 0.0114, BEST: 0.004, INT8: 0.002}), {}, [*first, *parts])
    compared = speeds.compare(BEST, INT8)
    assert compared is not None
    assert compared.paired
    assert compared.ratio.ratio == pytest.approx(2, rel=0.05)


def test_the_end_of_a_run() -> None:
    """The summary of a whole run of two kinds, with twins, dropped turns, and nothing to judge against yet."""
    asked, taught = measured(STEPS), training()
    rounds = [*together(asked, twin=1.0, dropped=2), *together(taught, twin=1.0)]
    lines = summary_lines([*asked, *taught], NONE_YET, {}, ["ipexperf show last"], (), rounds)
    golden("run.txt", "\n".join(lines))
    assert max(map(len, lines)) <= 120


def test_the_end_of_a_run_whose_twin_differs() -> None:
    """One group is not to be trusted, and the others are."""
    asked, taught = measured(STEPS), training()
    rounds = [*together(asked, twin=1.1), *together(taught, twin=1.0)]
    lines = summary_lines([*asked, *taught], NONE_YET, {}, [], (), rounds)
    golden("run_distrusted.txt", "\n".join(lines))
    assert sum("DO NOT TRUST" in line for line in lines) == 1


def test_the_best_configuration_is_one_sentence() -> None:
    """It has stack, dtype and mode in words, its speed with an interval, and whether its answers changed."""
    sentence, stacks, dtypes, slower, note = told(measured(STEPS))
    assert sentence.startswith("resnet18, inference: bf16 on ipex, traced (infer_jit), is fastest: 3.0")
    assert " times stock fp32 (2.9" in sentence
    assert sentence.endswith("; accuracy 91.8%, unchanged")
    assert stacks.startswith("  ipex over stock: fp32 traced 1.7")
    assert "; bf16 traced 1.7" in stacks
    assert dtypes.startswith("  bf16 over fp32: ipex traced 1.6")
    assert slower == "slower than the baseline: not known, for there is none yet"
    assert note.endswith(BRACKETS)
    assert "*" not in f"{sentence}{stacks}{dtypes}{note}"


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (0.918, 0.918 - Policy().accuracy_bound + 1e-9, "unchanged"),
        (0.918, 0.880, "accuracy 88.0%, 3.8 points below stock fp32"),
        (0.918, 0.950, "accuracy 95.0%, 3.2 points above stock fp32"),
    ],
)
def test_accuracy_is_unchanged_within_the_bound_of_the_judge(before: float, after: float, words: str) -> None:
    """Else it is said by how much it differs, and which way."""
    made = [measurement(PLAIN, 0.01, accuracy=before), measurement(BEST, 0.003, accuracy=after)]
    assert told(made)[0].endswith(words)


def test_accuracy_is_held_against_stock_fp32_alone() -> None:
    """Without stock fp32 in the run nobody knows whether it changed."""
    made = measured({replace(TRACED, stack="ipex"): 0.01, BEST: 0.003})
    assert told(made)[0].startswith("resnet18, inference: bf16 on ipex, traced (infer_jit), is fastest: 3.3")
    assert " times fp32 on ipex, traced (infer_jit) (" in told(made)[0]
    assert told(made)[0].endswith("; accuracy 91.8%")
    assert told(made)[0].count("accuracy") == 1


def test_int8_has_a_line_of_its_own() -> None:
    lines = told(measured({**STEPS, INT8: 0.002}))
    assert lines[0].startswith("resnet18, inference: int8 on ipex, traced (infer_jit), is fastest: 5.")
    assert [line.split(":")[0] for line in lines[1:4]] == ["  ipex over stock", "  bf16 over fp32", "  int8 over fp32"]


def test_what_is_not_seen_to_be_faster_is_not_called_so() -> None:
    """A ratio whose interval holds 1 shows no difference; neither of two equals is the fastest."""
    made = measured({PLAIN: 0.0100, BEST: 0.00999})
    assert told(made)[0].startswith("resnet18, inference: nothing is seen to be faster than stock fp32: bf16 on ipex, ")
    assert told(made)[0].endswith("), no difference seen")
    slower = measured({PLAIN: 0.0100, BEST: 0.01001})
    assert "nothing is seen to be faster than stock fp32" in told(slower)[0]
    equals = measured({PLAIN: 0.0200, TRACED: 0.01001, BEST: 0.00998})
    assert " is among the fastest: 2.0" in told(equals)[0]
    assert "no difference seen between it and " in told(equals)[0]
    ipex = measured({TRACED: 0.01, replace(TRACED, stack="ipex"): 0.01001})
    assert told(ipex)[1].endswith("), no difference seen")


def test_the_plainest_case_may_be_the_best() -> None:
    sentence = told(measured({PLAIN: 0.01, BEST: 0.02}))[0]
    assert sentence == "resnet18, inference: fp32 on stock, eager (infer), is fastest; accuracy 91.8%"


@pytest.mark.parametrize("outcome", ["failed", "invalid", "contended"])
def test_nothing_is_claimed_of_what_does_not_count(outcome: str) -> None:
    """Nor is it what others are held against."""
    made = measured(STEPS)
    rounds = together(made)
    verdict = Verdict("invalid" if outcome == "contended" else outcome, "", contended=outcome == "contended")  # type: ignore[arg-type]
    lines = told(made, rounds, {BEST.uid: verdict})
    assert "bf16 on ipex" not in lines[0]
    assert "bf16 traced" in lines[1]
    assert lines[1].endswith("; not known for bf16 traced: one of the two has no numbers that count")
    assert f"not known (1 {outcome})" in lines[3]
    lines = told(made, rounds, {PLAIN.uid: verdict})
    assert " times fp32 on stock, traced (infer_jit) (" in lines[0]


def test_a_case_that_failed_mid_run_is_told_of_by_nobody() -> None:
    """Its first round is on record, and counts for nothing."""
    made = measured(STEPS)
    rounds = together(made)
    broken = replace(crashed(), case=BEST)
    lines = told([*made[:-1], broken], rounds, {BEST.uid: Verdict("failed", "crashed")})
    assert "bf16 on ipex" not in "".join(lines)
    alone = told([broken], rounds, {BEST.uid: Verdict("failed", "crashed")})
    assert alone == [
        "resnet18, inference: no case counts (1 failed)",
        "slower than the baseline: not known (1 failed)",
    ]


def test_a_group_of_one_is_held_against_nothing() -> None:
    sentence, slower = told(measured({BEST: 0.003}))
    assert sentence == (
        "resnet18, inference: bf16 on ipex, traced (infer_jit), has nothing to compare with: there is no other case; "
        "accuracy 91.8%"
    )
    assert slower.startswith("slower than")
    never = told([*measured({BEST: 0.003}), out_of_budget(PLAIN)], [])
    assert "with: no other case counts (1 not measured)" in never[0]


def test_without_shared_rounds_launches_are_compared_and_marked() -> None:
    """With rounds off every ratio is of launches; of one launch each it has no interval."""
    lines = told(measured(STEPS), [])
    assert "is fastest: 3.04* times stock fp32 (" in lines[0]
    assert NO_TURNS in lines[-1]
    single = [replace(x, launches=x.launches[:1]) for x in measured({PLAIN: 0.01, BEST: 0.002})]
    assert "was fastest: 5.00* times stock fp32, and a single launch has no interval" in told(single, [])[0]


def test_cases_of_two_rounds_apart_have_a_ratio_of_launches() -> None:
    """Each was beside the reference, and not beside the other."""
    first, second = replace(TRACED, stack="ipex"), TRACED
    plain, one, other = measured({PLAIN: 0.02, first: 0.01, second: 0.012})
    lines = told([plain, one, other], [*together([plain, one]), *together([plain, other])])
    assert "*" not in lines[0].replace("; no difference", "")
    assert "fp32 traced 1.20* times" in lines[1]


def test_groups_are_told_apart_by_what_differs() -> None:
    """Two models, two kinds of step, two batches of one id: each has its own sentence, no longer than needed."""
    made = measured({PLAIN: 0.01, TRAIN: 0.05})
    assert [line.split(": ")[0] for line in told(made, [])[:2]] == ["resnet18, inference", "resnet18, training"]
    other = replace(PLAIN, model="resnet50")
    assert told(measured({PLAIN: 0.01, other: 0.02}), [])[1].startswith("resnet50, inference: ")
    batches = told(measured({PLAIN: 0.01, replace(PLAIN, batch=8): 0.005}), [])
    assert [line.split(": ")[0] for line in batches[:2]] == [
        "resnet18, inference, batch 32",
        "resnet18, inference, batch 8",
    ]


def test_a_knob_that_all_have_is_not_told() -> None:
    """One that tells two configurations apart is."""
    cores = (("cores", "0-3"),)
    made = measured({replace(PLAIN, knobs=cores): 0.01, replace(BEST, knobs=(*cores, ("level", "O0"))): 0.003})
    sentence = told(made)[0]
    assert "bf16 on ipex, traced (infer_jit), with level=O0, is fastest: 3.3" in sentence
    assert "times stock fp32 (" in sentence


@pytest.mark.parametrize(
    ("outcomes", "words"),
    [
        (["regressed", "ok"], f"slower than the baseline: 1 of 2 cases: {PLAIN.id}"),
        (
            ["ok", "inconclusive"],
            "slower than the baseline: none of those that could be judged (1 of 2 cases, 1 inconclusive)",
        ),
        (["inconclusive", "no_baseline"], "slower than the baseline: not known (1 inconclusive, 1 no_baseline)"),
    ],
)
def test_whether_anything_got_slower(outcomes: list[str], words: str) -> None:
    made = measured({PLAIN: 0.01, BEST: 0.003})
    verdicts = {one.case.uid: Verdict(outcome, "") for one, outcome in zip(made, outcomes, strict=True)}  # type: ignore[arg-type]
    assert words in told(made, None, verdicts)


def test_a_twin_stands_below_its_reference() -> None:
    """With its own ratio; without a twin there is no such row, and no word of it."""
    made = measured(STEPS)
    lines = summary_lines(made, NONE_YET, {}, [], (), together(made, twin=1.0))
    at = next(place for place, line in enumerate(lines) if line.startswith(TWIN))
    assert lines[at - 1].startswith(f"{PLAIN.id} ")
    column = next(line for line in lines if line.startswith("case")).index("x fp32")
    assert lines[at][:column].strip() == TWIN.strip()
    assert lines[at][column:].startswith(("0.99", "1.00"))
    assert "twin" not in "".join(summary_lines(made, NONE_YET, {}, [], (), together(made)))


def test_a_twin_that_differs_is_loud() -> None:
    """By how much, and what to look at, before anything that it makes doubtful."""
    made = measured(STEPS)
    rounds = together(made, twin=1.1)
    first, second = told(made, rounds)[:2]
    assert first.startswith("DO NOT TRUST THE RATIOS of resnet18, inference: the same case a second time")
    assert "ran 0.9" in first
    assert "ipexperf doctor" in first
    assert second.startswith("resnet18, inference: bf16 on ipex")
    row = next(line for line in summary_lines(made, NONE_YET, {}, [], (), rounds) if line.startswith(TWIN))
    assert row.endswith(" DIFFERS")
    quiet = told(made, together(made, twin=1.01))
    assert not any("TRUST" in line for line in quiet)


def test_a_process_that_was_twice_as_slow_is_named() -> None:
    """With its round, for whoever looks at its launch; where no process is odd, nothing is said."""
    made = measured(STEPS)
    rounds = together(made)
    assert "ODD PROCESS" not in "".join(summary_lines(made, NONE_YET, {}, [], (), rounds))
    slow = rounds[1].seats[0]
    twice = replace(slow, times=tuple(tuple(2.1 * x for x in part) for part in slow.times))
    rounds[1] = replace(rounds[1], number=2, seats=(twice, *rounds[1].seats[1:]))
    told = " ".join(" ".join(summary_lines(made, NONE_YET, {}, [], (), rounds)).split())
    assert f"ratios discount it: {slow.case.id}: 2.1" in told
    assert "times in round 2" in told


def test_turns_that_were_dropped_are_counted_in_one_line() -> None:
    made = measured(STEPS)
    lines = summary_lines(made, NONE_YET, {}, [], (), together(made, dropped=4))
    assert "12 of 36 turns were dropped: the machine was busy with something else meanwhile" in lines
    assert "dropped" not in "".join(summary_lines(made, NONE_YET, {}, [], (), together(made)))


def test_intervals_give_way_where_there_is_no_room() -> None:
    """First they are written short, then not at all; an id is never cut."""
    made = measured(STEPS)
    rounds = together(made, twin=1.0)
    roof = {"bound": "computing"}
    launches = {one.case: tuple(replace(x, roof=roof) for x in one.launches) for one in made}
    roofed = [
        replace(one, launches=tuple(replace(x, metrics={**x.metrics, "of_roof": 0.6}) for x in launches[one.case]))
        for one in made
    ]
    judged = {one.case.uid: Verdict("inconclusive", "", ratio=1.01, lo=0.98, hi=1.02) for one in made}
    lines = summary_lines(roofed, judged, {}, [], (), rounds)
    assert max(map(len, lines)) <= 120
    (row,) = [line for line in lines if line.startswith(f"{BEST.id} ")]
    assert re.search(r"  3\.0\d \+-[1-4]%  ", row)
    assert any(line.endswith("; +-: its 95 % interval") for line in lines)


cases = st.builds(
    replace,
    st.just(PLAIN),
    model=st.sampled_from(["resnet18", "a_model_of_somebody_with_a_rather_long_name"]),
    dtype=st.sampled_from(["fp32", "bf16", "int8"]),
    mode=st.sampled_from(["infer", "infer_jit", "train", "multistream", "load"]),
    stack=st.sampled_from(["stock", "ipex"]),
    batch=st.sampled_from([1, 4096]),
    knobs=st.sampled_from([(), (("level", "O0"),), (("channels_last", "off"), ("weights_prepack", "off"))]),
)
outcomes = st.sampled_from(["ok", "improved", "regressed", "failed", "invalid", "inconclusive", "not_comparable"])


@given(
    st.dictionaries(cases, st.tuples(st.floats(1e-7, 1e4), outcomes), min_size=1, max_size=9),
    st.sampled_from(["rounds", "launches"]),
    st.floats(0.2, 5.0),
    st.sampled_from([1, 3]),
)
def test_any_run_has_a_summary_that_fits(
    found: dict[Case, tuple[float, str]], source: str, twin: float, count: int
) -> None:
    """Whatever a run has measured, no line is wider than 120, and every id is told whole."""
    made = [measurement(case, step, accuracy=0.9) for case, (step, _) in found.items()]
    made = [replace(x, launches=(Launch(0, "error", "x"),)) if found[x.case][1] == "failed" else x for x in made]
    verdicts = {
        case.uid: Verdict(outcome, "", ratio=1.01, lo=0.9, hi=1.1)  # type: ignore[arg-type]
        for case, (_, outcome) in found.items()
    }
    groups: dict[tuple[object, ...], list[Measurement]] = {}
    for one in made:
        if found[one.case][1] != "failed":
            key = (one.case.model, one.case.mode.split("_")[0], one.case.batch)
            groups.setdefault(key, []).append(one)
    rounds = (
        [x for group in groups.values() for x in together(group, twin=twin, count=count)] if source == "rounds" else []
    )
    lines = summary_lines(made, verdicts, {}, [], ("channels_last", "weights_prepack"), rounds)
    assert max(map(len, lines)) <= 120
    words = {word for line in lines for word in line.split()}
    assert {case.id for case in found} <= words
