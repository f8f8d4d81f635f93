"""The conclusions of a run: the best configuration, the gain of each choice, and what they must not claim."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_records import crashed, golden, measurement, out_of_budget, summary, together, told

from ipexperf.case import NetworkCase
from ipexperf.judge.policy import Policy
from ipexperf.ratio import Ratio
from ipexperf.report.advice import NO_TURNS, advice
from ipexperf.result import MEAN, Launch, Measurement, RoundRecord
from ipexperf.verdict import SpeedVerdict, Verdict

PLAIN = NetworkCase("resnet18", "cpu", "fp32", "infer", "stock", 32, 32, data="digits")
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


def measured(steps: dict[NetworkCase, float], accuracy: float = 0.918) -> list[Measurement]:
    return [measurement(case, step, accuracy=accuracy) for case, step in steps.items()]


def advice_of(
    measurements: list[Measurement],
    rounds: list[RoundRecord] | None = None,
    verdicts: dict[str, Verdict] | None = None,
) -> list[str]:
    """The advice, with what every pair of cases would have had in rounds."""
    shared = together(measurements) if rounds is None and len(measurements) > 1 else rounds or []
    return advice(summary(measurements, verdicts, shared))


def training() -> list[Measurement]:
    return measured(TRAINED, 0.961)


def test_the_summary_of_a_run() -> None:
    """It has two kinds of steps, twins, dropped turns, and no baseline yet."""
    asked, taught = measured(STEPS), training()
    rounds = [*together(asked, twin=1.0, dropped=2), *together(taught, twin=1.0)]
    lines = told([*asked, *taught], None, rounds, commands=[("ipexperf show last", "every number of this run")])
    golden("run.txt", "\n".join(lines))
    assert max(map(len, lines)) <= 120
    quiet = "".join(told(asked, None, together(asked)))
    assert ("twin" in quiet, "other work" in quiet) == (False, False)


def test_the_summary_of_a_run_whose_twin_differs() -> None:
    """The ratios of one group are not to be trusted, those of the others are."""
    asked, taught = measured(STEPS), training()
    rounds = [*together(asked, twin=1.1), *together(taught, twin=1.0)]
    lines = told([*asked, *taught], None, rounds)
    golden("run_distrusted.txt", "\n".join(lines))
    assert sum("DO NOT TRUST" in line for line in lines) == 1
    assert not any("TRUST" in line for line in advice_of(asked, together(asked, twin=1.01)))


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (0.918, 0.918 - Policy().accuracy_bound + 1e-9, "unchanged"),
        (0.918, 0.880, "accuracy 88.0 %, 3.8 points below stock fp32"),
        (0.918, 0.950, "accuracy 95.0 %, 3.2 points above stock fp32"),
    ],
)
def test_accuracy_is_unchanged_within_the_bound_of_the_judge(before: float, after: float, words: str) -> None:
    """Otherwise the sentence has the signed difference."""
    made = [measurement(PLAIN, 0.01, accuracy=before), measurement(BEST, 0.003, accuracy=after)]
    assert advice_of(made)[0].endswith(words)


def test_accuracy_is_compared_only_with_stock_fp32() -> None:
    """Without stock fp32 in the run the sentence says nothing of a change."""
    made = measured({replace(TRACED, stack="ipex"): 0.01, BEST: 0.003})
    assert advice_of(made)[0].startswith("resnet18, inference: bf16 on ipex, traced (infer_jit), is fastest: 3.3")
    assert " times fp32 on ipex, traced (infer_jit) (" in advice_of(made)[0]
    assert advice_of(made)[0].endswith("; accuracy 91.8 %")
    assert advice_of(made)[0].count("accuracy") == 1


def test_int8_has_a_line_of_its_own() -> None:
    lines = advice_of(measured({**STEPS, INT8: 0.002}))
    assert lines[0].startswith("resnet18, inference: int8 on ipex, traced (infer_jit), is fastest: 5.")
    assert [line.split(":")[0] for line in lines[1:4]] == ["  ipex over stock", "  bf16 over fp32", "  int8 over fp32"]


def test_a_case_whose_interval_contains_1_is_not_called_faster() -> None:
    """Then none of the two is called the fastest."""
    made = measured({PLAIN: 0.0100, BEST: 0.00999})
    assert advice_of(made)[0].startswith(
        "resnet18, inference: nothing is seen to be faster than stock fp32: bf16 on ipex, "
    )
    assert advice_of(made)[0].endswith("), no difference seen")
    slower = measured({PLAIN: 0.0100, BEST: 0.01001})
    assert "nothing is seen to be faster than stock fp32" in advice_of(slower)[0]
    equals = measured({PLAIN: 0.0200, TRACED: 0.01001, BEST: 0.00998})
    assert " is among the fastest: 2.0" in advice_of(equals)[0]
    assert "no difference seen between it and " in advice_of(equals)[0]
    ipex = measured({TRACED: 0.01, replace(TRACED, stack="ipex"): 0.01001})
    assert advice_of(ipex)[1].endswith("), no difference seen")


def test_the_plainest_case_may_be_the_best() -> None:
    sentence = advice_of(measured({PLAIN: 0.01, BEST: 0.02}))[0]
    assert sentence == "resnet18, inference: fp32 on stock, eager (infer), is fastest; accuracy 91.8 %"


@pytest.mark.parametrize("outcome", ["failed", "invalid", "contended"])
def test_a_case_that_does_not_count_is_neither_best_nor_base(outcome: str) -> None:
    made = measured(STEPS)
    rounds = together(made)
    verdict = Verdict("invalid" if outcome == "contended" else outcome, "", contended=outcome == "contended")  # type: ignore[arg-type]
    lines = advice_of(made, rounds, {BEST.uid: verdict})
    assert "bf16 on ipex" not in lines[0]
    assert "bf16 traced" in lines[1]
    assert lines[1].endswith("; not known for bf16 traced: one of the two has no numbers that count")
    assert f"not known (1 {outcome}, 4 no_baseline)" in lines[3]
    lines = advice_of(made, rounds, {PLAIN.uid: verdict})
    assert " times fp32 on stock, traced (infer_jit) (" in lines[0]


def test_a_case_that_failed_in_the_middle_of_a_run_has_no_ratio() -> None:
    """Its first round is recorded and does not count."""
    made = measured(STEPS)
    rounds = together(made)
    broken = replace(crashed(), case=BEST)
    lines = advice_of([*made[:-1], broken], rounds, {BEST.uid: Verdict("failed", "crashed")})
    assert "bf16 on ipex" not in "".join(lines)
    alone = advice_of([broken], rounds, {BEST.uid: Verdict("failed", "crashed")})
    assert alone == [
        "resnet18, inference: no case counts (1 failed)",
        "slower than the baseline: not known (1 failed)",
    ]


def test_a_case_whose_mean_alone_is_longer_is_slower() -> None:
    """One that keeps more memory is not."""
    mean = Verdict("regressed", "", MEAN, ratio=Ratio(1.1))
    speed = SpeedVerdict("inconclusive", "")
    one = replace(mean, metric="step_time", ratio=Ratio(1.01), bounds=(0.96, 1.06), others=(mean,), speed=speed)
    assert advice_of(measured({BEST: 0.003}), [], {BEST.uid: one})[1].startswith("slower than the baseline: 1 of 1 ca")
    kept = replace(one, others=(replace(mean, metric="held_memory"),), speed=replace(speed, outcome="ok"))
    assert advice_of(measured({BEST: 0.003}), [], {BEST.uid: kept})[1].endswith("could be judged (1 of 1 case)")


def test_a_group_with_one_case_has_no_ratio() -> None:
    sentence, slower = advice_of(measured({BEST: 0.003}))
    assert sentence == (
        "resnet18, inference: bf16 on ipex, traced (infer_jit), has nothing to compare with: there is no other case; "
        "accuracy 91.8 %"
    )
    assert slower.startswith("slower than")
    never = advice_of([*measured({BEST: 0.003}), out_of_budget(PLAIN)], [])
    assert "with: no other case counts (1 not measured)" in never[0]


def test_without_shared_rounds_launches_are_compared_and_marked() -> None:
    """With rounds off every ratio is over launches. With one launch each it has no interval."""
    lines = advice_of(measured(STEPS), [])
    assert "is fastest: 3.04* times stock fp32 (" in lines[0]
    assert NO_TURNS in lines[-1]
    single = [replace(x, launches=x.launches[:1]) for x in measured({PLAIN: 0.01, BEST: 0.002})]
    assert "was fastest: 5.00* times stock fp32, and a single launch has no interval" in advice_of(single, [])[0]


def test_cases_without_a_shared_round_are_compared_by_launches() -> None:
    """Each shared a round with the reference, and none with the other."""
    first, second = replace(TRACED, stack="ipex"), TRACED
    plain, one, other = measured({PLAIN: 0.02, first: 0.01, second: 0.012})
    lines = advice_of([plain, one, other], [*together([plain, one]), *together([plain, other])])
    assert "*" not in lines[0].replace("; no difference", "")
    assert "fp32 traced 1.20* times" in lines[1]


def test_the_names_of_groups_have_what_distinguishes_them() -> None:
    """Two models, two kinds of step, or two batches of one id, and nothing that all have in common."""
    made = measured({PLAIN: 0.01, TRAIN: 0.05})
    assert [line.split(": ")[0] for line in advice_of(made, [])[:2]] == ["resnet18, inference", "resnet18, training"]
    other = replace(PLAIN, model="resnet50")
    assert advice_of(measured({PLAIN: 0.01, other: 0.02}), [])[1].startswith("resnet50, inference: ")
    batches = advice_of(measured({PLAIN: 0.01, replace(PLAIN, batch=8): 0.005}), [])
    assert [line.split(": ")[0] for line in batches[:2]] == [
        "resnet18, inference, batch 8",
        "resnet18, inference, batch 32",
    ]


def test_a_knob_that_all_cases_have_is_not_named() -> None:
    """One that distinguishes two configurations is."""
    cores = (("cores", "0-3"),)
    made = measured({replace(PLAIN, knobs=cores): 0.01, replace(BEST, knobs=(*cores, ("level", "O0"))): 0.003})
    sentence = advice_of(made)[0]
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
def test_one_line_says_whether_anything_got_slower(outcomes: list[str], words: str) -> None:
    made = measured({PLAIN: 0.01, BEST: 0.003})
    verdicts = {one.case.uid: Verdict(outcome, "") for one, outcome in zip(made, outcomes, strict=True)}  # type: ignore[arg-type]
    assert words in advice_of(made, None, verdicts)


def test_intervals_are_shortened_or_left_out_if_there_is_no_room() -> None:
    """First they are written short, then left out. An id is never cut."""
    made = measured(STEPS)
    rounds = together(made, twin=1.0)
    roofed = [
        replace(one, launches=tuple(replace(x, metrics={**x.metrics, "of_roof": 0.6}) for x in one.launches))
        for one in made
    ]
    judged = {one.case.uid: Verdict("inconclusive", "", ratio=Ratio(1.01)) for one in made}
    lines = told(roofed, judged, rounds)
    assert max(map(len, lines)) <= 120
    (row,) = [line for line in lines if line.startswith(f"{BEST.id} ")]
    assert re.search(r"  3\.0\d \+-[1-4] %  ", row)
    assert any(line.endswith("; +-: its 95 % interval") for line in lines)


@pytest.mark.parametrize(("share", "said"), [(0.99, False), (1.53, True)])
def test_a_share_above_the_whole_says_how_to_get_a_better_roof(share: float, *, said: bool) -> None:
    """The machine was probably busy when its rates were measured, which no later run can see otherwise."""
    made = [
        replace(one, launches=tuple(replace(x, metrics={**x.metrics, "of_roof": share}) for x in one.launches))
        for one in measured(STEPS)
    ]
    lines = " ".join(told(made, {one.case.uid: Verdict("ok", "") for one in made}, together(made, twin=1.0)))
    assert ("`ipexperf clean peaks --yes` has it measured again" in lines) is said


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
    st.floats(1e-6, 1e6),
    st.sampled_from([1, 3]),
)
def test_any_run_has_a_summary_that_fits(
    found: dict[NetworkCase, tuple[float, str]], source: str, twin: float, ratio: float, count: int
) -> None:
    """No line is wider than 120 columns, and every id is complete."""
    made = [measurement(case, step, accuracy=0.9) for case, (step, _) in found.items()]
    made = [replace(x, launches=(Launch(0, "error", "x"),)) if found[x.case][1] == "failed" else x for x in made]
    verdicts = {
        case.uid: Verdict(outcome, "", ratio=Ratio(ratio, 0.9 * ratio, 1.1 * ratio))  # type: ignore[arg-type]
        for case, (_, outcome) in found.items()
    }
    groups: dict[tuple[object, ...], list[Measurement]] = {}
    for one in made:
        if found[one.case][1] != "failed":
            axes = one.case.axes
            key = (axes["model"], axes["mode"].split("_")[0], one.case.inputs["batch"])
            groups.setdefault(key, []).append(one)
    rounds = (
        [x for group in groups.values() for x in together(group, twin=twin, count=count)] if source == "rounds" else []
    )
    lines = told(made, verdicts, rounds, ablated=("channels_last", "weights_prepack"))
    assert max(map(len, lines)) <= 120
    words = {word for line in lines for word in line.split()}
    assert {case.id for case in found} <= words
