"""Flame graphs: as wide as calls take, and coloured where an arm takes longer."""

import re

from ipexperf.dossier import drawing
from ipexperf.proof import tracing

QUICK = ["a step", 0.010, 1.0, [["conv", 0.006, 2.0, []], ["relu <x>", 0.002, 1.0, []]]]
SLOW = ["a step", 0.020, 1.0, [["conv", 0.006, 2.0, []], ["copy", 0.012, 4.0, [["empty", 0.001, 1.0, []]]]]]


def boxes(svg: str) -> dict[str, tuple[str, float, float]]:
    """The kind, place and width of each box, by the name in its title."""
    shape = re.compile(r'<g class="(\w+)"><title>(.*?):.*?</title><rect x="([\d.]+)" y="\d+" width="([\d.]+)"')
    return {name: (kind, float(x), float(width)) for kind, name, x, width in shape.findall(svg)}


def test_a_call_is_as_wide_as_it_takes_and_lies_behind_those_before_it() -> None:
    drawn = boxes(drawing.flames([QUICK], 0.020))
    assert drawn["a step"] == ("plain", 0.0, 599.5)
    assert drawn["conv"] == ("plain", 0.0, 359.5)
    assert drawn["relu &lt;x&gt;"] == ("plain", 360.0, 119.5)


def test_what_takes_longer_than_in_the_other_arm_is_warm_and_what_takes_less_is_cool() -> None:
    slower, quicker = drawing.flames([SLOW], 0.020, [QUICK]), drawing.flames([QUICK], 0.020, [SLOW])
    assert {name: kind for name, (kind, *_) in boxes(slower).items()} == {
        "a step": "warm", "conv": "plain", "copy": "warm", "empty": "warm"
    }  # fmt: skip
    assert boxes(quicker)["a step"][0] == "cool"
    assert "copy: 12.0 ms a step, 4 calls, 0 s in the other arm" in slower


def test_a_device_and_other_threads_have_a_graph_of_their_own_below() -> None:
    drawn = drawing.flames([QUICK, ["on the device", 0.018, 1.0, []]], 0.020)
    assert boxes(drawn)["on the device"] == ("plain", 0.0, 1079.5)
    assert 'y="42"' in drawn


def test_steps_that_were_not_traced_have_no_graph() -> None:
    assert drawing.flames(tracing.NOTHING["flames"], 1.0) == ""


def test_the_call_that_takes_longer_is_named_if_its_file_differs() -> None:
    before = ["a step", 0.010, 1.0, [["nets.py: forward", 0.009, 1.0, [["conv", 0.008, 2.0, []]]]]]
    after = ["a step", 0.020, 1.0, [["nets.py: forward", 0.018, 1.0, [["conv", 0.016, 2.0, []]]]]]
    assert drawing.slowed([after], [before], ["nets.py"]) == ("nets.py: forward", 0.009, 0.018)
    assert drawing.slowed([after], [before], ["other.py"]) is None


def test_what_grew_most_comes_first() -> None:
    rows = drawing.lost({"gone": [3.0, 1.0], "same": [1.0, 1.0]}, {"same": [1.5, 2.0], "new": [4.0, 8.0]})
    assert rows == [("new", 0.0, 4.0, 0.0, 8.0), ("same", 1.0, 1.5, 1.0, 2.0), ("gone", 3.0, 0.0, 1.0, 0.0)]
