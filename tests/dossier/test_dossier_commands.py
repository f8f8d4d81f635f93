"""What a dossier says to run next: only searches that can find something."""

from typing import Any

from ipexperf.bench.cell import Settings
from ipexperf.case import NetworkCase
from ipexperf.compare.against import PairPlan
from ipexperf.compare.arm import Arm
from ipexperf.compare.round import ArmResult
from ipexperf.conduct.conditions import Conditions
from ipexperf.dossier import making
from ipexperf.judge.policy import PairPolicy
from ipexperf.plan.arms import ArmSpec
from ipexperf.result import Launch
from ipexperf.verdict import Verdict

CASE = NetworkCase("resnet18", "cpu", "bf16", "infer", "stock", 32, 32)
NIGHT = "2.10.0.dev202611"


def commands(torch: tuple[str, str] = ("2.8.0", "2.8.0"), commits: tuple[str, str] = ("", ""), **variables: str) -> Any:
    against = PairPlan(ArmSpec("baseline:a"), "", {CASE: CASE}, PairPolicy())
    question = making.Question(CASE, Verdict("regressed", ""), against, "", "", "pytest", "--model x", commits)
    sides = [
        ArmResult(Arm(CASE, Conditions(Settings(), variables=given)), Launch(0, "ok"), {"software": {"torch": version}})
        for version, given in zip(torch, (variables, {}), strict=True)
    ]
    return {one.kind: one.command(question.axes) for one in making._searches(question, *sides)}


def test_arms_of_the_same_software_and_files_have_nothing_to_search() -> None:
    assert commands() == commands(commits=("abc", "abcdef")) == commands(commits=("abc", "")) == {}


def test_what_differs_can_be_searched() -> None:
    assert set(commands(OMP_NUM_THREADS="1")) == {"package or variable"}
    assert commands(commits=("abc", "def"))["commit"] == "ipexperf bisect --commits abc..def --model x"
    nights = commands((f"{NIGHT}20+cpu", f"{NIGHT}27+cpu"))["nightly build of torch"]
    assert (
        nights == f"ipexperf bisect --good baseline:a --package torch --versions {NIGHT}20+cpu..{NIGHT}27+cpu --model x"
    )
