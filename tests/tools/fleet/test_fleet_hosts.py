"""The hosts that `--where` chooses, its errors, and who measures which group."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipexperf.errors import UsageError
from ipexperf.tools.fleet import hosts
from ipexperf.tools.fleet.hosts import Host

RACK = [
    Host("arc1", "1", {"name": "arc1", "device": "cpu_xpu", "driver": "25.9", "cores": "8", "card": "A770"}),
    Host("arc2", "2", {"name": "arc2", "device": "cpu_xpu", "driver": "25.31", "cores": "16", "card": "B580"}),
    Host("xeon", "3", {"name": "xeon", "device": "cpu", "cores": "112"}),
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
        ("cores>8", "arc2 xeon"),
        ("device=xpu and card=B580", "arc2"),
        ("name=xeon", "xeon"),
        ("cores > 8 and name != xeon", "arc2"),
    ],
)
def test_hosts_are_chosen_by_their_labels(text: str | None, names: str) -> None:
    assert " ".join(host.name for host in hosts.chosen(RACK, text)) == names


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("devise=xpu", "unknown label 'devise': did you mean device?"),
        ("zzz=1", "choose from card, cores, device, driver, name"),
        ("device", "'device' is no comparison such as device=xpu"),
        ("device=", "'device=' is no comparison"),
        ("=xpu", "'=xpu' is no comparison"),
        ("device=!", "'device=!' is no comparison"),
        ("cores=8 card=B580", "'cores=8 card=B580' is no comparison"),
        ("cores=8 and", "'' is no comparison"),
        ("cores=8 or card=B580", "'cores=8 or card=B580' is no comparison"),
        ("cores=9", "none of the 3 hosts passes"),
    ],
)
def test_an_invalid_text_is_one_sentence(text: str, reason: str) -> None:
    with pytest.raises(UsageError) as error:
        hosts.chosen(RACK, text)
    assert reason in str(error.value)
    assert "\n" not in str(error.value)


def test_two_hosts_of_one_name_are_refused() -> None:
    with pytest.raises(UsageError, match="two hosts of the fleet are called arc1"):
        hosts.chosen([RACK[0], RACK[0]], None)


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
