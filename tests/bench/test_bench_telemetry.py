"""What the system tells of a card while it works: from files as i915 and xe write them, and from vendors' tools."""

import sys
from pathlib import Path

import pytest
from sysfs import add_card

from ipexperf.bench.devices._telemetry import NVIDIA_SMI, READINGS, XPU_SMI, CardReading, Telemetry, Tool

ADDRESS = "0000:03:00.0"
XE = "device/tile0/gt0/freq0"
I915 = "gt/gt0"


class Card:
    """A card's files under a root of its own, whose accounts go on with every step."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.steps = 0
        self.waits: list[int] = []
        self.driver = "xe"
        self.busy = True

    def add(self, number: int = 0, address: str = ADDRESS, vendor: str = "0x8086") -> Path:
        return add_card(self.root, number, address, vendor)

    def write(self, card: Path, name: str, text: str) -> None:
        (card / name).parent.mkdir(parents=True, exist_ok=True)
        (card / name).write_text(f"{text}\n")

    def account(self, address: str = ADDRESS, descriptor: int = 7, client: int = 3) -> None:
        """What /proc/self/fdinfo says by now: half of the time was worked."""
        worked = self.steps if self.busy else 0
        counters = {
            "xe": f"drm-cycles-ccs:\t{worked * 500}\ndrm-total-cycles-ccs:\t{self.steps * 1000}\ndrm-cycles-bcs:\t0\n",
            "i915": f"drm-engine-compute:\t{worked * 500} ns\ndrm-engine-capacity-video:\t2\n",
        }[self.driver]
        path = self.root / "proc/self/fdinfo" / str(descriptor)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            f"pos:\t0\ndrm-driver:\t{self.driver}\ndrm-client-id:\t{client}\ndrm-pdev:\t{address}\n{counters}"
        )

    def watch(self, tool: Tool = XPU_SMI, find: str | None = None, card: str | None = None) -> CardReading:
        telemetry = Telemetry(self.root, lambda _: find, lambda: self.steps * 1e-6)
        return telemetry.watch(self.step, self.synchronise, 2, tool, card)

    def step(self) -> None:
        self.steps += 1
        if (self.root / "proc").exists():
            self.account()

    def synchronise(self) -> None:
        self.waits.append(self.steps)


@pytest.fixture
def card(tmp_path: Path) -> Card:
    return Card(tmp_path)


@pytest.mark.parametrize(("driver", "file"), [("xe", f"{XE}/act_freq"), ("i915", f"{I915}/rps_act_freq_mhz")])
def test_the_clock_and_the_work_of_a_card_are_read_where_its_driver_writes_them(
    card: Card, driver: str, file: str
) -> None:
    """Megahertz become hertz, and engines that worked half of the time are half busy."""
    card.driver = driver
    card.write(card.add(), file, "2400")
    card.account()
    assert card.watch().metrics() == {"frequency": 2.4e9, "utilisation": pytest.approx(0.5)}


def test_the_clock_is_read_while_the_card_works(card: Card) -> None:
    """Each reading comes after a block was put into the queue and before it is waited for."""
    clocks = card.add()
    card.account()

    def step() -> None:
        Card.step(card)
        card.write(clocks, f"{XE}/act_freq", "2400")

    def synchronise() -> None:
        Card.synchronise(card)
        card.write(clocks, f"{XE}/act_freq", "300")

    card.step, card.synchronise = step, synchronise  # type: ignore[method-assign]
    assert card.watch().frequency == 2.4e9
    assert card.waits == [2, 4, 6, 8, 10]


def test_of_several_cards_it_is_the_one_that_works_for_us(card: Card) -> None:
    """The kernel's account of this process names the card; another card's clock is not taken for ours."""
    other = "0000:04:00.0"
    card.write(card.add(0, other), f"{XE}/act_freq", "300")
    card.write(card.add(1), f"{XE}/act_freq", "2400")
    card.account()
    assert card.watch().frequency == 2.4e9


def test_of_several_idle_cards_none_is_guessed(card: Card) -> None:
    """Without an account that moved nobody knows which card it is: nothing is told."""
    card.write(card.add(0, "0000:04:00.0"), f"{XE}/act_freq", "300")
    card.write(card.add(1), f"{XE}/act_freq", "2400")
    assert card.watch() == CardReading()


def test_a_second_descriptor_of_one_account_counts_once(card: Card) -> None:
    """A process may hold a card open twice: its work is not twice as much."""
    card.write(card.add(), f"{XE}/act_freq", "2400")

    def step() -> None:
        Card.step(card)
        card.account(descriptor=8)

    card.account()
    card.step = step  # type: ignore[method-assign]
    assert card.watch().utilisation == pytest.approx(0.5)


@pytest.mark.parametrize("file", [f"{XE}/throttle/status", f"{I915}/throttle_reason_status"])
def test_a_card_that_is_held_back_is_noted(card: Card, file: str) -> None:
    """A clock that heat or power keeps down is said beside the numbers."""
    files = card.add()
    card.write(files, f"{XE}/act_freq", "900")
    card.write(files, file, "1")
    card.account()
    assert card.watch().notes == (f"the card's clock was held back in {READINGS} of {READINGS} readings",)
    card.write(files, file, "0")
    assert card.watch().notes == ()


def tool(path: Path, text: str, *, ends: bool = True) -> str:
    """A vendor's tool that prints this; one that prints on for ever is stopped."""
    program = path / "smi"
    program.write_text(
        f"#!{sys.executable}\nimport sys, time\nprint({text!r}, flush=True)\nif not {ends}: time.sleep(60)\n"
    )
    program.chmod(0o755)
    return str(program)


@pytest.mark.process
def test_the_vendors_tool_is_asked_where_the_files_are_silent(card: Card, tmp_path: Path) -> None:
    """xpu-smi prints until it is stopped; its first line of numbers is taken, and steps go on meanwhile."""
    card.write(card.add(), f"{XE}/act_freq", "")
    card.account()
    card.busy = True
    lines = "Timestamp, DeviceId, GPU Utilization (%), GPU Frequency (MHz)\n06:14:46.000,    0, 97.50, 2350"
    seen = card.watch(XPU_SMI, tool(tmp_path, lines, ends=False))
    assert seen.frequency == 2.35e9
    assert seen.utilisation == pytest.approx(0.5)  # the kernel's own account was there, and stays
    assert card.steps > 2 * READINGS


@pytest.mark.process
def test_nvidias_tool_is_asked_of_the_card_by_name(card: Card, tmp_path: Path) -> None:
    """CUDA has no files to read: both numbers come from nvidia-smi."""
    assert card.watch(NVIDIA_SMI, tool(tmp_path, "83, 1785"), card="GPU-1234") == CardReading(1.785e9, 0.83)
