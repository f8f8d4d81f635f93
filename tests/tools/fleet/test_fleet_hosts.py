"""The hosts that `--where` chooses, its errors, and who measures which group."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipexperf.errors import UsageError
from ipexperf.tools.fleet import hosts
from ipexperf.tools.fleet.hosts import Host

RACK = [
    Host("arc1", "1", labels={"device": "cpu_xpu", "driver": "25.9", "memory": "64", "room": "a"}),
    Host("arc2", "2", labels={"device": "cpu_xpu", "driver": "25.31", "memory": "128", "room": "b"}),
    Host("xeon", "3", labels={"device": "cpu", "memory": "512", "room": "b"}),
]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (None, "arc1 arc2 xeon"),
        ("", "arc1 arc2 xeon"),
        ("device=xpu", "arc1 arc2"),
        ("device=cpu", "arc1 arc2 xeon"),
        ("device!=xpu", "xeon"),
        ("driver>=25.10", "arc2"),
        ("driver<25.10", "arc1"),
        ("memory>64", "arc2 xeon"),
        ("device=xpu and room=b", "arc2"),
        ("name=xeon", "xeon"),
        ("room = b and name != xeon", "arc2"),
    ],
)
def test_hosts_are_chosen_by_their_labels(text: str | None, names: str) -> None:
    assert " ".join(host.name for host in hosts.chosen(RACK, text)) == names


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("devise=xpu", "unknown label 'devise': did you mean device?"),
        ("zzz=1", "choose from device, driver, memory, name, room"),
        ("device", "'device' is no comparison such as device=xpu"),
        ("device=", "'device=' is no comparison"),
        ("=xpu", "'=xpu' is no comparison"),
        ("device=!", "'device=!' is no comparison"),
        ("room=a room=b", "'room=a room=b' is no comparison"),
        ("room=a and", "'' is no comparison"),
        ("room=a or room=b", "'room=a or room=b' is no comparison"),
        ("room=c", "none of the 3 hosts passes"),
    ],
)
def test_an_invalid_text_is_one_sentence(text: str, reason: str) -> None:
    with pytest.raises(UsageError) as error:
        hosts.chosen(RACK, text)
    assert reason in str(error.value)
    assert "\n" not in str(error.value)


def test_a_fleet_without_hosts_says_how_to_join_one() -> None:
    with pytest.raises(UsageError, match="ipexperf fleet join"):
        hosts.chosen([], None)


@given(st.text(alphabet="()=<>! andort\tdevice7.", max_size=40))
def test_any_text_is_valid_or_refused_in_one_sentence(text: str) -> None:
    try:
        assert all(host in RACK for host in hosts.chosen(RACK, text))
    except UsageError:
        return


def test_only_the_groups_of_a_lost_host_move_and_they_move_back_with_it() -> None:
    names = ["a", "b", "c", "d"]
    groups = [f"model{number} cpu infer 8x32" for number in range(400)]
    before = {group: hosts.of_group(names, group) for group in groups}
    without = {group: hosts.of_group([name for name in names if name != "b"], group) for group in groups}
    assert {group for group in groups if before[group] != without[group]} == {
        group for group in groups if before[group] == "b"
    }
    shares = [list(before.values()).count(name) for name in names]
    assert min(shares) > 60, shares
    assert {group: hosts.of_group(names[::-1], group) for group in groups} == before
