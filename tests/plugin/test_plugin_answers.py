"""Another constant in a user's network: its answers are not those that were accepted. Needs torch."""

import pytest
from plugin_suite import Suite

pytestmark = [pytest.mark.long, pytest.mark.process, pytest.mark.torch]

NETWORK = """
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(8, 8)
        self.second = torch.nn.Linear(8, 4)

    def forward(self, values):
        return {forward}
"""
PLAIN = "self.second(torch.nn.functional.leaky_relu(self.first(values), 0.1))"
REFACTORED = "self.second(torch.nn.LeakyReLU(1 / 10)(self.first(values)))"
OTHER = "self.second(torch.nn.functional.leaky_relu(self.first(values), 0.3))"
CELL = ("--device", "cpu", "--dtype", "fp32", "--mode", "infer", "--stack", "stock")
LAUNCHES = ("--perf-launches", "2", "--perf-samples", "3", "--perf-seconds", "0.02")
PAIRS = ("--perf-against=baseline", "--perf-max-pairs=2")
ACCEPT = ("baseline", "accept", "last", "--reason", "right", "--by", "me")


def run(suite: Suite, forward: str, *more: str) -> pytest.RunResult:
    (suite.path / "net.py").write_text(NETWORK.format(forward=forward))
    # A step of a few microseconds has no speed to judge.
    words = ("--perf-model", "net.py:Net@8", *CELL, "--perf-gate", "step_operators", "--perf-without=roof")
    return suite.raw(*words, *(() if more == PAIRS else LAUNCHES), *more, patience=300)


@pytest.mark.parametrize("judged", [PAIRS, ("--perf-against=stored",)])
def test_other_answers_fail_until_they_are_accepted_and_a_refactoring_does_not(
    torch_suite: Suite, judged: tuple[str, ...]
) -> None:
    run(torch_suite, PLAIN).assert_outcomes(passed=1)
    assert torch_suite.command(*ACCEPT).ret == 0

    assert "its answers" not in run(torch_suite, REFACTORED, *judged).stdout.str()

    other = run(torch_suite, OTHER, *judged)
    other.assert_outcomes(failed=1)
    assert "its answers changed: " in other.stdout.str()

    refused = torch_suite.command(*ACCEPT)
    assert refused.ret == 1
    assert "accept it with --regression-ok" in refused.stdout.str()
    assert torch_suite.command(*ACCEPT, "--regression-ok").ret == 0
    assert "its answers" not in run(torch_suite, OTHER, "--perf-against=stored").stdout.str()
