"""The lines of the summary on ablated knobs."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from report_records import FAST, crashed, measurement, together, told

from ipexperf.case import NetworkCase
from ipexperf.report.table import SHARES
from ipexperf.result import Launch, Measurement, RoundRecord
from ipexperf.verdict import Verdict

PREPACK = replace(FAST, knobs=(("weights_prepack", "off"),))
LAYOUT = replace(FAST, knobs=(("channels_last", "off"),))
ABLATED = ("weights_prepack", "channels_last")


def taken(case: NetworkCase, *steps: float) -> Measurement:
    """A measurement whose launches took these steps."""
    launches = tuple(Launch(at, "ok", metrics={"step_time": x, "throughput": 8 / x}) for at, x in enumerate(steps))
    return replace(measurement(case, 1.0), launches=launches)


WHOLE = taken(FAST, 0.100, 0.101, 0.099)


def share(
    *measurements: Measurement, verdicts: Mapping[str, Verdict] | None = None, rounds: Sequence[RoundRecord] = ()
) -> str:
    """What is said of the knobs of the first case."""
    lines = told(measurements, verdicts, rounds, ablated=ABLATED)
    below = lines[lines.index(SHARES) + 1 :]
    end = next(at for at, line in enumerate(below) if not line.startswith(" "))
    text = " ".join(line.strip() for line in below[:end])
    assert text.startswith(f"{FAST.id}: ")
    return text.removeprefix(f"{FAST.id}: ")


def test_each_ablated_knob_has_its_share_and_noise_has_none() -> None:
    """A knob without which a case takes 31 % more has a share. One within the noise shows none."""
    slower, noise = taken(PREPACK, 0.131, 0.132, 0.130), taken(LAYOUT, 0.100, 0.107, 0.099)
    verdicts = {one.case.uid: Verdict("ok", "") for one in (WHOLE, slower, noise)}
    layout, prepack = share(WHOLE, slower, noise, verdicts=verdicts).split("; ")
    assert prepack.startswith("without weights_prepack 1.31* times the step time (1.2")
    assert "no share" not in prepack
    assert layout.startswith("without channels_last 1.02* times the step time (0.9")
    assert layout.endswith(", no share seen")
    assert SHARES not in told([WHOLE, slower])  # a knob that was only set asks for no share
    assert SHARES not in told([slower], ablated=ABLATED)


def test_a_share_comes_from_the_rounds_that_both_were_in() -> None:
    """On a machine that drifts, launches differ by more than neighbouring turns."""
    both = taken(FAST, 0.100, 0.140, 0.090), taken(PREPACK, 0.131, 0.181, 0.118)
    assert "without weights_prepack 1.31 times the step time (1.2" in share(*both, rounds=together(both))
    assert "no share seen" in share(*both)


def test_a_single_launch_has_a_ratio_without_an_interval() -> None:
    said = share(WHOLE, taken(PREPACK, 0.3))
    assert "without weights_prepack 3.00* times the step time (a single launch has no interval)" in said


@pytest.mark.parametrize("side", [0, 1])
def test_a_failed_or_invalid_case_has_no_share(side: int) -> None:
    """The line says so in place of a number."""
    pair = [WHOLE, taken(PREPACK, 0.131, 0.132)]
    said = share(*pair, verdicts={pair[side].case.uid: Verdict("invalid", "")})
    assert said.startswith("without weights_prepack not told: one of the two has no numbers that count")
    pair[side] = replace(crashed(), case=pair[side].case)
    assert "times" not in share(*pair)
