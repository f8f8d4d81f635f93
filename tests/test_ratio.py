"""One ratio in all its spellings."""

import pytest

from ipexperf.ratio import SINGLE, TOO_FEW, Ratio

NEAR = Ratio(1.12, 1.041, 1.209)


@pytest.mark.parametrize(
    ("ratio", "change", "cell", "brief"),
    [
        (NEAR, "+12.0 % (+4.1 to +20.9)", "1.12 (1.04 to 1.21)", "1.12 +-8 %"),
        (Ratio(5.0, 0.9, 25.0), "5.0 times (0.90 to 25.0)", "5.00 (0.900 to 25.0)", "5.00 +-400 %"),
        (Ratio(0.5, apart=True), "-50.0 %", "0.500*", "0.500*"),
        (Ratio(2.0, 1e-3, 4e3), f"2.0 times ({TOO_FEW})", f"2.00 ({TOO_FEW})", "2.00"),
    ],
)
def test_a_ratio_is_written_as_a_change_and_as_a_number_of_times(
    ratio: Ratio, change: str, cell: str, brief: str
) -> None:
    assert (str(ratio), ratio.cell, ratio.brief) == (change, cell, brief)


def test_an_interval_is_written_or_why_there_is_none() -> None:
    assert NEAR.precise == "1.120 (1.041 to 1.209)"
    assert NEAR.sentence("times", "no difference") == "1.12 times (1.04 to 1.21)"
    assert Ratio(1.0, 0.9, 1.1).sentence("times", "no difference").endswith("(0.900 to 1.10), no difference")
    assert Ratio(2.0).sentence("times", "no difference") == f"2.00 times ({SINGLE})"
