"""One process of a host measures on a device at a time, and a lease dies with its process."""

import os
import re
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from free_machine import Clock
from lease_holder import Holder
from sysfs import TILES, add_card

from ipexperf.bench import loading
from ipexperf.bench.devices._accelerator import Accelerator
from ipexperf.bench.devices._telemetry import Telemetry
from ipexperf.case import NetworkCase
from ipexperf.conduct import lease
from ipexperf.conduct.conductor import Conductor
from ipexperf.conduct.lease import Lease
from ipexperf.errors import UsageError
from ipexperf.plan.options import Options
from ipexperf.steps import Notice
from ipexperf.variables import LEASES

CASE = NetworkCase("tiny", "fake", "fp32", "spin", "plain", 1, 1, data="none")

process = pytest.mark.process


@pytest.fixture
def said() -> list[str]:
    """The messages of leases."""
    return []


@pytest.fixture
def make(said: list[str]) -> Iterator[Callable[..., Lease]]:
    """Makes leases of this process, and gives them back at the end."""
    made = []

    def make(mode: str = "fail") -> Lease:
        made.append(Lease(mode, said.append))
        return made[-1]

    yield make
    for one in reversed(made):
        one.close()


def while_waiting(monkeypatch: pytest.MonkeyPatch, *steps: Callable[[], object]) -> None:
    """Does one of these steps each time a lease is about to sleep; a lease that sleeps once more fails the test."""
    left = list(steps)
    monkeypatch.setattr(lease, "sleep", lambda _: left.pop(0)())


def free(*devices: str) -> bool:
    """Whether another process could hold these devices now."""
    with Holder(*devices) as other:
        return other.line().startswith("held")


@process
def test_a_device_that_another_process_holds_is_refused_with_its_name(make: Callable[..., Lease]) -> None:
    with Holder("cpu") as other:
        other.held()
        with pytest.raises(UsageError) as error:
            make().take(["cpu"])
    who = rf"\S+ has held it since \d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d UTC \(process {other.pid}: -c fail cpu\)"
    ways = r"wait for it \(--perf-lease wait\), or measure without a lease \(--perf-lease off\)"
    assert re.fullmatch(f"the CPU is not free: {who}: {ways}", str(error.value))


@process
def test_a_waiting_lease_names_each_holder_once(
    make: Callable[..., Lease], leases: Path, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(lease, "monotonic", clock)
    with Holder("cpu") as other:
        other.held()
        moments = [lambda now=now: setattr(clock, "now", now) for now in (10.0, 130.0)]
        next_one = lambda: (leases / "cpu.lease").write_text("anna has held it")  # noqa: E731
        while_waiting(monkeypatch, *moments, next_one, other.close)
        waiting = make("wait")
        waiting.take(["cpu"])
    assert [re.sub(r"\S+ has held it since.*", "HOLDER", line) for line in said] == [
        "waiting for the CPU: HOLDER",
        "waiting for the CPU: anna has held it",
        "the CPU is free",
    ]
    assert isinstance(said[0], Notice)  # so that -q prints it
    assert waiting.seconds_waited == 130.0


@process
def test_runs_on_different_cards_share_the_cpu(make: Callable[..., Lease]) -> None:
    """But not with a run on the CPU, and two runs never share a card."""
    make().take(["xpu-0", "shared:cpu"])
    assert free("xpu-1", "shared:cpu")
    assert not free("xpu-0", "shared:cpu")
    assert not free("cpu")


@process
def test_a_child_measures_under_the_lease_of_its_parent(make: Callable[..., Lease]) -> None:
    """Also on a device that it would share and the parent holds alone, and also the child's child."""
    outer = make()
    outer.take(["cpu"])
    for wanted in ("cpu", "shared:cpu"):
        with Holder(wanted, below=True) as child:
            child.held()
    assert not free("cpu")


@process
def test_a_child_does_not_wait_for_a_device_that_its_parent_lacks(make: Callable[..., Lease]) -> None:
    """Two commands that each wait for what the other holds would wait for ever."""
    make().take(["cpu"])
    with Holder("xpu-0") as other:
        other.held()
        with Holder("xpu-0", "shared:cpu", mode="wait", below=True) as child:
            reason = child.refused()
    assert re.match(r"xpu-0 is not free: \S+ has held it since ", reason)
    assert reason.endswith("a command inside a lease does not wait for more devices: let the outer lease take them all")


@process
def test_a_lease_that_needs_more_gives_back_all_first(
    make: Callable[..., Lease], monkeypatch: pytest.MonkeyPatch
) -> None:
    """While it waits for the card, another may take the CPU. At the end it has both."""
    growing = make("wait")
    growing.take(["cpu"])
    between = []
    with Holder("xpu-0") as other:
        other.held()
        while_waiting(monkeypatch, lambda: (between.append(free("cpu")), other.close()))
        growing.take(["xpu-0", "shared:cpu"])
    assert between == [True]
    assert not free("xpu-0")
    assert not free("shared:cpu")


def test_two_leases_of_one_process_do_not_wait_for_each_other(make: Callable[..., Lease], said: list[str]) -> None:
    make("wait").take(["cpu"])
    make("wait").take(["cpu"])
    assert said == []


@process
def test_what_a_process_shares_it_cannot_have_alone_too(make: Callable[..., Lease]) -> None:
    make("wait").take(["shared:cpu"])
    with pytest.raises(UsageError, match="the CPU cannot be measured alone: an outer lease shares it with others"):
        make("wait").take(["cpu"])
    assert not free("cpu")


def test_a_lease_with_off_locks_and_opens_nothing(make: Callable[..., Lease], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LEASES, os.devnull)
    make("off").take(["cpu"])


@process
def test_a_case_is_ready_when_its_device_is_free(
    fake: str, tmp_path: Path, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The wait is not taken from the budget, and closing the run gives the device back."""
    clock = Clock()
    loading.load((fake,))
    conductor = Conductor(Options(load=(fake,), budget=60.0), tmp_path, said.append, clock=clock)
    monkeypatch.setattr(lease, "monotonic", clock)
    with Holder("cpu") as other:
        other.held()
        while_waiting(monkeypatch, lambda: (setattr(clock, "now", 100.0), other.close()))
        conductor.ready(CASE)
    assert said[-1] == "the CPU is free"
    clock.now = 160.0
    assert not conductor.spent()
    clock.now = 161.0
    assert conductor.spent()
    assert not free("cpu")
    conductor.close()
    assert free("cpu")


@pytest.mark.parametrize("driver", TILES)
@pytest.mark.parametrize(
    ("cards", "variable", "numbers"),
    [
        ({}, "", "012"),
        ({}, "ZE_AFFINITY_MASK=2, 3", "23"),
        ({}, "ONEAPI_DEVICE_SELECTOR=level_zero:1", "1"),
        ({"18": 2, "9a": 2}, "", "0011"),
        ({"18": 2, "9a": 2}, "ONEAPI_DEVICE_SELECTOR=level_zero:3,0", "10"),
        ({"18": 2, "9a": 2}, "ZE_AFFINITY_MASK=1,2,7", "017"),
        ({"18": 2, "9a": 2}, "ZE_FLAT_DEVICE_HIERARCHY=COMPOSITE", "01"),
        ({"00": 2, "03": 1, "04": 1}, "", "012"),
        ({"00": 2, "03": 1, "04": 1}, "ZE_ENABLE_PCI_ID_DEVICE_ORDER=1", "201"),
    ],
)
def test_a_card_has_one_lease_with_all_its_tiles_however_it_is_chosen(
    driver: str, cards: dict[str, int], variable: str, numbers: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They share its power and its clocks. A graphics unit in the processor has no tiles, and usually comes last."""
    environment = dict([variable.split("=")] if variable else [])
    monkeypatch.setattr(Accelerator, "telemetry", Telemetry(tmp_path))
    for number, (bus, tiles) in enumerate(cards.items()):
        add_card(tmp_path, number, f"0000:{bus}:02.0", tiles=tiles, driver=driver)
    held = [lease.claims("xpu", index, environment) for index in range(len(numbers))]
    assert held == [{"shared:cpu", f"xpu-{number}"} for number in numbers]
    assert lease.claims("xpu", 0, environment, len(numbers)) == set().union(*held)


@process
def test_work_on_all_cores_has_the_cpu_to_itself(said: list[str]) -> None:
    """It waits until nobody measures, and nobody measures meanwhile, not even on a card."""
    with lease.for_work("fail", said.append):
        assert not free("cpu")
        assert not free("shared:cpu")
    assert free("cpu")
    with Holder("shared:cpu") as other:
        other.held()
        with pytest.raises(UsageError, match="the CPU is not free"), lease.for_work("fail", said.append):
            pytest.fail("it began beside a measurement")


@process
@pytest.mark.parametrize("device", ["cpu", "shared:cpu"])
def test_work_under_the_lease_of_a_card_needs_no_more(device: str, make: Callable[..., Lease], said: list[str]) -> None:
    """A search on a card that builds a commit keeps its share of the CPU."""
    make().take([device])
    with lease.for_work("fail", said.append):
        assert not free("cpu")
    assert not free("cpu")


@pytest.mark.process
def test_a_killed_holder_gives_its_devices_back_at_once() -> None:
    with Holder("cpu") as other:
        other.held()
        other.kill()
        assert free("cpu")


def test_every_user_may_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[..., Lease]) -> None:
    """Whatever the umask of the first user. Only the owner of a file may remove it."""
    monkeypatch.setenv(LEASES, str(tmp_path / "new"))
    before = os.umask(0o077)
    try:
        make().take(["cpu"])
        assert os.umask(0o077) == 0o077
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o1777
    assert stat.S_IMODE((tmp_path / "new" / "cpu.lease").stat().st_mode) == 0o666


@pytest.mark.parametrize(
    ("folder", "reason"),
    [
        ("no/such", "no such file or directory"),
        ("file", "file exists"),
        ("file/below", "not a directory"),
    ],
)
def test_an_impossible_folder_is_one_sentence(
    folder: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[..., Lease]
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(LEASES, str(tmp_path / folder))
    told = f"no lease can be taken in {tmp_path / folder}: {reason}: let IPEXPERF_LEASES name a folder that every user"
    with pytest.raises(UsageError, match=re.escape(told)):
        make().take(["cpu"])


def test_links_of_other_users_are_not_followed(leases: Path, tmp_path: Path, make: Callable[..., Lease]) -> None:
    """Through a link we would write into a file of our own."""
    ours = tmp_path / "ours"
    ours.write_text("precious")
    (leases / "link.lease").symlink_to(ours)
    (leases / "nowhere.lease").symlink_to(tmp_path / "new")
    (leases / "folder.lease").mkdir()
    loop = "too many levels of symbolic links"
    for device, reason in (("link", loop), ("nowhere", loop), ("folder", "is a directory")):
        with pytest.raises(UsageError, match=rf"{device}\.lease: {reason}: let"):
            make().take([device])
    assert ours.read_text() == "precious"
    assert not (tmp_path / "new").exists()


@process
def test_a_note_has_no_control_characters_for_the_terminal_of_its_reader(leases: Path) -> None:
    """Every user may write to the file, so it may contain anything."""
    with Holder("cpu", "xpu-0") as other:
        other.held()
        (leases / "cpu.lease").write_bytes(b"\033[2J\xff" * 200)
        (leases / "xpu-0.lease").write_text("")
        for device, note in (("cpu", r"[^\x00-\x1f]{1,300}"), ("xpu-0", "another process holds it")):
            with Holder(device) as late:
                assert re.fullmatch(rf"(the CPU|xpu-0) is not free: {note}: wait for it .*", late.refused())


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["/home/anna/.venv/bin/pytest", "suites/"], "pytest suites/"),
        (["/lib/python/site-packages/pytest/__main__.py", "suites/"], "pytest suites/"),
        (["pytest", "--perf-db=postgresql://anna:secret@db/history"], "pytest --perf-db=postgresql://***@db/history"),
        (["pytest", "--api-token", "secret", "MY_KEY=secret"], "pytest --api-token *** MY_KEY=hidden-1e858334"),
    ],
)
def test_a_holder_is_shown_by_its_command_without_secrets(
    words: list[str], text: str, make: Callable[..., Lease], leases: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", words)
    make().take(["cpu"])
    assert (leases / "cpu.lease").read_text().endswith(f" (process {os.getpid()}: {text})")
