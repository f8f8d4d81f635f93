"""A history with one of everything that a report can show, made by hand."""

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from ipexperf.case import NetworkCase
from ipexperf.history import History
from ipexperf.ratio import Ratio
from ipexperf.result import Check, Launch, Measurement, RoundRecord, Sample, SeatRecord
from ipexperf.verdict import BaselineEvidence, PairsEvidence, Structure, Verdict

RUNS = 14
MOVED = 9
"""The run from which on everything is otherwise: another torch, and one case is slower."""
EVIL = "</script><script>window.hacked=1</script>"
ANGRY = "<img src=x onerror='window.hacked=2'> & \"quotes\""
MACHINE = "xeon-8480-2s"
PLAIN = NetworkCase("resnet50", "cpu", "fp32", "infer", "stock", 16, 224)
SLOWER = replace(PLAIN, dtype="bf16", mode="infer_jit", stack="ipex")
STEADY = replace(PLAIN, mode="train")
FASTER = replace(PLAIN, stack="ipex")
NAMED = replace(PLAIN, model=EVIL)
FAILED = replace(PLAIN, model="vgg16")
PAIRED = replace(SLOWER, knobs=(("against", "stack=stock"),))
CASES = (PLAIN, SLOWER, STEADY, FASTER, NAMED, FAILED, PAIRED)
FINGERPRINTS = tuple(
    {
        "version": 1,
        "digest": digest,
        "structure": {
            "operators": [{"operator": name, "calls": 17, "types": {"bfloat16": 17}, "shapes": "x", "inside": {"": 17}}]
        },
        "times": {"operators": [0.01]},
        "unstable": [],
        "missing": {},
        "unparsed": [],
        "seconds": 0.4,
    }
    for digest, name in (("a" * 64, "aten::conv2d"), ("b" * 64, "aten::convolution"))
)
RATES = {
    SLOWER: {"flop_rate": 4.1e11, "of_roof": 0.41},
    STEADY: {"flop_rate": 3e11},
}
"""What two cases did: of one the roof is known too."""


def environment(number: int) -> dict[str, Any]:
    torch = "2.8.0+cpu" if number < MOVED else "2.9.0+cpu"
    return {
        "machine_key": MACHINE,
        "hardware": {"cpu": "Xeon 8480+", "cores": 56, "isa": ["avx2", "avx512f"]},
        "software": {"torch": torch, "ipex": "2.8.0+cpu"},
        "variables": {"OMP_NUM_THREADS": "56"},
        "git": {"commit": f"{0x9C4A1F + 7919 * number:06x}" * 6, "branch": "main", "dirty": False},
    }


def step(case: NetworkCase, number: int) -> float:
    level = {PLAIN: 0.08, SLOWER: 0.012, STEADY: 0.25, FASTER: 0.06, NAMED: 0.05, PAIRED: 0.02}[case]
    level *= 1.15 if case == SLOWER and number >= MOVED else 1
    return level * (1 + 0.004 * math.sin(7 * number + len(case.mode)))


def measured(case: NetworkCase, number: int) -> Measurement:
    moment = f"2026-05-{number + 1:02d}T02:00:00Z"
    if case == FAILED:
        launches = [Launch(0, "crashed", ANGRY, log=f"loading\n{ANGRY}")]
        return Measurement(case, tuple(launches), environment(number), moment, moment)
    launches = []
    for index in range(3):
        own = step(case, number) * (1 + 0.002 * index)
        launches.append(
            Launch(
                index,
                "ok",
                samples=tuple(Sample(own * (1 + 0.001 * (n % 7 - 3)), own, 0.0) for n in range(30)),
                metrics={
                    "step_time": own,
                    "throughput": case.batch / own,
                    "peak_memory": 4e8,
                    "accuracy": 0.945,
                    **RATES.get(case, {}),
                },
                proof=(Check("dtype", ok=True, found=case.dtype, expected=case.dtype),),
                notes=(ANGRY,) if case == NAMED else (),
                fingerprint=FINGERPRINTS[number == RUNS - 1] if case in (SLOWER, PAIRED) else None,
            )
        )
    return Measurement(case, tuple(launches), environment(number), moment, moment)


def judged(case: NetworkCase, number: int) -> Verdict:
    if case == FAILED:
        return Verdict("failed", f"crashed: {ANGRY}")
    if case == PAIRED:
        ratios = [math.log(0.6 + 0.01 * index) for index in range(4)]
        facts = PairsEvidence(
            "stack=stock", stopped="sure", differences=("stack: stock -> ipex",), log_ratios=tuple(ratios)
        )
        other = Structure("changed", "the digest is not the other arm's", ("relu no longer fused",))
        return Verdict(
            "improved", "faster than the other arm",
            ratio=Ratio(0.615, 0.59, 0.64), mde=0.04, evidence=facts, structure=other,
        )  # fmt: skip
    if case == SLOWER:
        ratio = 1.15 if number >= MOVED else 1.0
        said = Structure("changed", "the digest is not the baseline's", ("relu no longer fused",))
        return Verdict(
            "regressed" if number >= MOVED else "ok", "15 % slower" if number >= MOVED else "within the tolerance",
            ratio=Ratio(ratio, ratio - 0.03, ratio + 0.03), evidence=BaselineEvidence(step_time=0.012), structure=said,
        )  # fmt: skip
    return Verdict(
        "no_baseline", ANGRY if case == NAMED else "no baseline was accepted for this case on this machine yet"
    )


def fill(path: Path, cases: tuple[NetworkCase, ...] = CASES, runs: int = RUNS) -> Path:
    """Write so many nightly runs of these cases."""
    with History.open(path) as history:
        for number in range(runs):
            told = {"started_at": f"2026-05-{number + 1:02d}T02:00:00Z", "suite": "nightly", "command": ["suites/"]}
            uid = history.start_run(environment(number), told)
            for case in cases:
                history.record(uid, measured(case, number), judged(case, number))
            history.finish_run(uid, "finished")
    return path


def take_turns(path: Path, times: float) -> str:
    """Give the newest run three rounds, in which IPEX was so many times as fast as stock PyTorch, which has a twin."""
    with History.open(path) as history:
        uid = history.find_run("last").uid
        for number in (1, 2, 3):
            arms = ((PLAIN, "case", 0.08), (PLAIN, "twin", 0.08 + 0.0001 * number), (FASTER, "case", 0.08 / times))
            seats = tuple(SeatRecord(case, role, ((step,) * 8,)) for case, role, step in arms)  # type: ignore[arg-type]
            moment = f"2026-05-{RUNS:02d}T02:0{number}:00Z"
            history.record_round(uid, RoundRecord(f"{number:032x}", "all", number, "together", seats, moment, 9.0, 8))
    return uid


def read(page: Path) -> dict[str, Any]:
    """The data of a page, as the browser gets it."""
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page.read_text(), re.DOTALL)
    found: dict[str, Any] = json.loads(text)
    return found
