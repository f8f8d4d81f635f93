"""One run with everything that can be said of a run, and what each renderer makes of it.

Delete a golden file and run with IPEXPERF_GOLDEN=1 to write it anew, then review it.
"""

from dataclasses import replace

import pytest
from report_records import (
    FAST,
    LONG,
    PLAIN,
    SLOW,
    crashed,
    golden,
    measurement,
    out_of_budget,
    summary,
    together,
    unproven,
)

from ipexperf.case import FunctionCase, NetworkCase
from ipexperf.judge import growth
from ipexperf.judge.metrics import combined
from ipexperf.judge.policy import Policy
from ipexperf.judge.screen import judge
from ipexperf.ratio import Ratio
from ipexperf.report import github, junit
from ipexperf.report.block import failure_block
from ipexperf.report.lines import Page
from ipexperf.report.summary import Summary
from ipexperf.report.table import summary_lines
from ipexperf.result import Launch, Measurement, Sample
from ipexperf.verdict import Level, PairsEvidence, Structure, Verdict

MIB = 2.0**20
OK = Verdict("ok", ratio=Ratio(1.01, 0.99, 1.03))
MORE = Verdict("regressed", metric="peak_memory", ratio=Ratio(1.02), level=Level(400 * MIB, 408 * MIB))
LESS = Verdict("improved", metric="held_memory", ratio=Ratio(0.98), level=Level(400 * MIB, 392 * MIB))
SAME = Verdict("ok", metric="library_memory", ratio=Ratio(1.0), level=Level(MIB, MIB))
CHANGES = (
    "convolution: brgconv:avx512_core_amx -> jit:avx2 in 53 of 53 calls; 71 % of the time difference",
    "+14 reorder",
)
LOST = Structure("changed", "the digest is not the baseline's", CHANGES, ("relu no longer fused",), fails=True)
CHANGED = Structure("changed", "the digest is not the baseline's", CHANGES)
LARGER = combined(OK, [MORE, LESS, SAME])
REPRODUCE = "pytest suites/zoo --model resnet50 --device cpu --dtype bf16 --mode infer_jit --stack ipex --batch 8"
ACCEPT = "ipexperf accept --run 0191 --case resnet50-cpu-bf16-infer_jit-ipex --regression-ok --reason '...'"


def with_launches(case: NetworkCase, **changes: object) -> Measurement:
    """A measurement whose last two launches have these properties."""
    made = measurement(case, 0.03)
    first, *others = made.launches
    return replace(made, launches=(first, *(replace(one, **changes) for one in others)))  # type: ignore[arg-type]


def slowing(case: NetworkCase) -> Measurement:
    """As a network that keeps what it has seen: its steps become slower and slower."""
    samples = tuple(Sample(0.01 * (1 + 0.1 * number), 0.01, 0.0) for number in range(20))
    made = measurement(case, 0.03)
    return replace(made, launches=growth.noted([replace(one, samples=samples) for one in made.launches]))


def function(name: str, verdict: Verdict, step: float = 0.001, **of_launch: object) -> tuple[Measurement, Verdict]:
    case = FunctionCase(f"tests/test_it.py::test_{name}", "cpu")
    launches = (Launch(0, "ok", metrics={"step_time": step}, **of_launch),)  # type: ignore[arg-type]
    told = {"sum": {"answers": "3 of 4 numbers"}, "odd": {"uncompared": "it is a generator"}}.get(name, {})
    pairs = PairsEvidence("git:main", log_ratios=(0.4,) * 4, **told)
    return Measurement(case, launches, {}, "", ""), replace(verdict, evidence=pairs)


WORSE = replace(OK, outcome="regressed", ratio=Ratio(1.5, 1.4, 1.6), others=(MORE,))


def operators(count: int) -> dict[str, object]:
    return {"beside": {"counts": {"operators": count}}}


def everything() -> Summary:
    """Networks and functions, and of each trouble a case."""
    net = {name: replace(LONG, model=name) for name in ("alexnet", "bert", "dlrm", "gpt2", "unet", "vgg11", "vgg16")}
    judged = [
        (measurement(PLAIN, 0.08), OK),
        (measurement(FAST, 0.02), replace(SLOW, structure=LOST)),
        (measurement(replace(FAST, knobs=(("weights_prepack", "off"),)), 0.03), replace(OK, structure=CHANGED)),
        (measurement(replace(FAST, knobs=(("graph_mode", "on"),)), 0.01), LARGER),
        (
            replace(crashed(), case=replace(FAST, dtype="int8")),
            Verdict("failed", "crashed: the worker died of signal 11"),
        ),
        (measurement(net["alexnet"], 0.03), replace(OK, structure=Structure("unstable", "why"))),
        (measurement(net["bert"], 0.03), Verdict("invalid", "machine contended: steal 12 %", contended=True)),
        (out_of_budget(net["dlrm"]), Verdict("inconclusive", "the budget (--perf-budget) was spent already")),
        (replace(measurement(net["gpt2"], 0.03), cut="the budget was spent after 3 of 5"), combined(OK, [LESS])),
        (with_launches(net["unet"], fewer="7 of 20, steps take 2.4 s", emulated=True), OK),
        (with_launches(net["vgg11"], settings="nice: 0 -> 10"), replace(OK, structure=replace(CHANGED, fails=True))),
        (slowing(net["vgg16"]), OK),
        function("sum", WORSE, against=operators(3), fingerprint={"digest": "0", **operators(5)}),
        function("mean", OK),
        function("file", Verdict("failed", "ValueError: no such file")),
        function("odd", replace(OK, contended=True)),
        function("new[longer than a table of 80 columns has room for]", Verdict("no_baseline", "none"), 0.0123),
    ]
    rounds = together([one for one, _ in judged[:4]], twin=1.1, dropped=2)
    slow = rounds[1].seats[0]
    twice = replace(slow, times=tuple(tuple(2.1 * x for x in part) for part in slow.times))
    rounds[1] = replace(rounds[1], seats=(twice, *rounds[1].seats[1:]))
    return summary(
        [one for one, _ in judged],
        {one.case.uid: verdict for one, verdict in judged},
        rounds,
        ablated=("weights_prepack", "graph_mode"),
        left_out={"xpu: no such device here (torch.xpu.is_available() is False)": 12, "int8 cannot be trained": 3},
        line="platform shift: 8.0 % slower",
        slower=[PLAIN.id, *(case.id for case in net.values())],
        fails=True,
        unseen=True,
        notes=["a note on the run"],
        missing=["resnet18-cpu-fp32-infer-stock"],
        commands=[("ipexperf show last", "every number of this run")],
    )


def test_the_terminal() -> None:
    lines = summary_lines(everything())
    golden("everything.txt", "\n".join(lines))
    assert max(map(len, lines)) <= 120


def test_a_terminal_of_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids have lines of their own, and are never cut."""
    monkeypatch.setattr(Page, "width", 80)
    lines = summary_lines(everything())
    assert max(map(len, lines)) <= 80
    assert {FAST.id, LONG.id.replace(LONG.model, "alexnet")} <= {*lines}


def test_github(tmp_path) -> None:
    """The summary of a job, and its annotations."""
    path = tmp_path / "summary.md"
    environment = {"GITHUB_STEP_SUMMARY": str(path), "GITHUB_ACTIONS": "true"}
    told = github.lines(everything(), "01a1fe7b-ee86-7f13-86e2", environment)
    golden("everything_github.txt", "\n".join([path.read_text(), *told]))


def test_junit() -> None:
    """The properties of each case, which has only the metrics that were measured."""
    made = everything()
    chosen = [*made.networks.values()][:6]
    lines = [f"{name}={value}" for one in chosen for name, value in [*junit.properties(*one), ("", "")]]
    golden("everything_junit.txt", "\n".join(lines))


NOTED = with_launches(FAST, notes=("ended with fewer samples than asked: 7 of 20, steps take 2.4 s",))


@pytest.mark.parametrize(
    ("name", "made", "verdict"),
    [
        ("block_regressed.txt", measurement(FAST, 0.0203), SLOW),
        ("block_invalid.txt", unproven(), judge(unproven(), None, Policy())),
        ("block_failed.txt", crashed(), judge(crashed(), None, Policy())),
        ("block_changed.txt", NOTED, replace(LARGER, structure=LOST)),
        ("block_structure.txt", NOTED, replace(OK, structure=replace(CHANGED, fails=True))),
    ],
)
def test_the_block_of_a_failed_test(name: str, made: Measurement, verdict: Verdict) -> None:
    """Its reason, then what was measured and with what it was compared, then what to do."""
    text = failure_block(made, verdict, verdict.evidence.differences if verdict.evidence else (), REPRODUCE, ACCEPT)
    golden(name, text)
    assert "Traceback" not in text
    assert all(len(line) <= 120 for line in text.splitlines())
