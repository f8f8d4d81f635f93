"""Telemetry of a working card: clock rate, utilisation and throttling.

Read from the kernel's files, which need no privileges: /proc/self/fdinfo identifies the card that this process uses,
and sysfs has its clock rate. The vendor's tool is used if these have no data.
"""

from __future__ import annotations

import os
import re
import shutil
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ipexperf.bench.machine import cards, kernel_files

READINGS = 5
PATIENCE = 10.0
"""Timeout for the vendor's tool in seconds."""
_CLOCKS = ("device/tile*/gt*/freq*/act_freq", "gt/gt*/rps_act_freq_mhz", "gt_act_freq_mhz")
_THROTTLES = ("device/tile*/gt*/freq*/throttle/status", "gt/gt*/throttle_reason_status")
"""Files of the drivers xe and i915, under /sys/class/drm/card*."""


@dataclass(frozen=True, slots=True)
class CardReading:
    """Readings: hertz, share of the time, and notes."""

    frequency: float | None = None
    utilisation: float | None = None
    notes: tuple[str, ...] = ()

    def metrics(self) -> dict[str, float]:
        values = {"frequency": self.frequency, "utilisation": self.utilisation}
        return {name: value for name, value in values.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Tool:
    """A vendor's tool, and the pattern for utilisation in per cent and frequency in MHz, in this order."""

    command: tuple[str, ...]
    answer: re.Pattern[str]


NVIDIA_SMI = Tool(
    ("nvidia-smi", "--query-gpu=utilization.gpu,clocks.current.sm", "--format=csv,noheader,nounits", "-i", "{card}"),
    re.compile(r"^[ \t]*([\d.]+),[ \t]*([\d.]+)[ \t]*\n", re.MULTILINE),
)
XPU_SMI = Tool(
    # The option for the number of lines differs between major versions (`-n`, `--number`), so we stop it instead.
    ("xpu-smi", "dump", "-d", "{card}", "--metrics", "0,2"),
    re.compile(r"^[^,\n]+,[^,\n]+,[ \t]*([\d.]+)[ \t]*,[ \t]*([\d.]+)[ \t]*\n", re.MULTILINE),
)


Engine = tuple[str, str]
"""The PCI address of a card, and the name of one of its engines."""
Work = tuple[float, float]
"""What an engine worked, and of how much: cycles of all cycles, or seconds of 0, which stands for the time passed."""


@dataclass(frozen=True, slots=True)
class Telemetry:
    """Observes one card while steps run on it."""

    root: Path = Path("/")
    find: Callable[[str], str | None] = shutil.which
    clock: Callable[[], float] = field(default=time.monotonic)

    def watch(
        self,
        step: Callable[[], None],
        synchronise: Callable[[], None],
        block: int,
        tool: Tool | None,
        card: str | None = None,
    ) -> CardReading:
        """Read the clock rate and the engines' counters while blocks of steps are queued."""
        before, begin = self.accounts(), self.clock()
        clocks: list[dict[str, float]] = []
        throttled: list[set[str]] = []
        for _ in range(READINGS):
            for _ in range(block):
                step()
            clocks.append(self._clocks())
            throttled.append(self._throttled())
            synchronise()
        shares = _shares(before, self.accounts(), self.clock() - begin)
        seen = {address for reading in clocks for address in reading}
        # With several cards, take the one whose engines this process used.
        address = card or max(shares, key=lambda name: shares[name], default=seen.pop() if len(seen) == 1 else None)
        if address is None:
            return CardReading()
        frequencies = [reading[address] for reading in clocks if address in reading]
        held_back = sum(address in reading for reading in throttled)
        notes = (f"the card's clock was held back in {held_back} of {READINGS} readings",) if held_back else ()
        frequency = statistics.median(frequencies) * 1e6 if frequencies else None
        utilisation = shares.get(address)
        program = self.find(tool.command[0]) if tool else None
        if tool and program and (frequency is None or utilisation is None):
            command = [program, *(word.format(card=address) for word in tool.command[1:])]
            if answer := self._answer(command, tool.answer, step, synchronise):
                busy, clock = (float(value) for value in answer.groups())
                frequency = clock * 1e6 if frequency is None else frequency
                utilisation = busy / 100 if utilisation is None else utilisation
        return CardReading(frequency, utilisation, notes)

    def accounts(self) -> dict[Engine, Work]:
        """Return the engines' counters for this process, from the kernel."""
        work: dict[Engine, Work] = {}
        clients = set()
        for path in sorted((self.root / "proc/self/fdinfo").glob("*")):
            fields = dict(re.findall(r"^(drm-[\w-]+):\s*(\S+)", kernel_files.text(path) or "", re.MULTILINE))
            client = (fields.get("drm-pdev"), fields.get("drm-client-id"))
            if None in client or client in clients:
                continue  # not a card, or a second descriptor of the same client
            clients.add(client)
            for name, value in fields.items():
                match = re.fullmatch(r"drm-(engine|cycles)-(?!capacity-)(.+)", name)
                if match is None:
                    continue
                unit, engine = match.groups()
                worked = float(value) / 1e9 if unit == "engine" else float(value)
                total = float(fields.get(f"drm-total-cycles-{engine}", 0)) if unit == "cycles" else 0.0
                others_worked, others_total = work.get((fields["drm-pdev"], engine), (0.0, 0.0))
                work[fields["drm-pdev"], engine] = others_worked + worked, max(others_total, total)
        return work

    def used(self) -> str | None:
        """Return the PCI address of the card whose engines this process has used most. None: the kernel has no data."""
        by_card: dict[str, float] = {}
        for (address, _), (worked, _) in self.accounts().items():
            by_card[address] = by_card.get(address, 0.0) + worked
        return max(by_card, key=lambda address: by_card[address]) if any(by_card.values()) else None

    def _clocks(self) -> dict[str, float]:
        """Return the clock rate of each card in megahertz."""
        clocks = {}
        for address, card in cards.intel_cards(self.root).items():
            texts = [kernel_files.text(path) or "" for pattern in _CLOCKS for path in card.glob(pattern)]
            if rates := [int(text) for text in texts if text.isdigit()]:
                clocks[address] = float(max(rates))
        return clocks

    def _throttled(self) -> set[str]:
        """Return the cards whose clock is held back."""
        return {
            address
            for address, card in cards.intel_cards(self.root).items()
            if any(kernel_files.text(path) == "1" for pattern in _THROTTLES for path in card.glob(pattern))
        }

    def _answer(
        self, command: list[str], answer: re.Pattern[str], step: Callable[[], None], synchronise: Callable[[], None]
    ) -> re.Match[str] | None:
        """Step until the vendor's tool has printed a line with both numbers, has ended, or takes too long."""
        until = self.clock() + PATIENCE
        printed = b""
        with subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as process:
            assert process.stdout is not None  # noqa: S101 - opened with a pipe
            os.set_blocking(process.stdout.fileno(), False)
            match, ended = None, False
            while not (match or ended) and self.clock() < until:
                step()
                synchronise()
                ended = process.poll() is not None  # poll before reading, so that its last output is not missed
                printed += process.stdout.read() or b""
                match = answer.search(printed.decode(errors="replace"))
            process.kill()
        return match


def _shares(before: Mapping[Engine, Work], after: Mapping[Engine, Work], seconds: float) -> dict[str, float]:
    """Return the utilisation of the busiest engine of each card that did anything."""
    shares: dict[str, float] = {}
    for (address, engine), (worked, total) in after.items():
        worked_before, total_before = before.get((address, engine), (0.0, 0.0))
        whole = total - total_before if total else seconds
        share = (worked - worked_before) / whole if whole > 0 else 0.0
        if share > 0:
            shares[address] = min(1.0, max(share, shares.get(address, 0.0)))
    return shares
