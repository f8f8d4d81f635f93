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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ipexperf.bench.machine import energy, kernel_files

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


@dataclass(frozen=True, slots=True)
class Busy:
    """Counters of one card's engines: busy time or cycles, and the total."""

    worked: float
    total: float


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
        clocks: list[Mapping[str, float]] = []
        throttled: list[Mapping[str, bool]] = []
        for _ in range(READINGS):
            for _ in range(block):
                step()
            clocks.append(dict(self._clocks()))
            throttled.append(dict(self._throttled()))
            synchronise()
        shares = _shares(before, self.accounts(), self.clock() - begin)
        # With several cards, take the one whose engines this process used.
        address = card or (max(shares, key=lambda name: shares[name]) if shares else self._only(clocks))
        frequencies = [reading[address] for reading in clocks if address in reading] if address else []
        readings_held_back = sum(reading.get(address or "", False) for reading in throttled)
        card_reading = CardReading(
            statistics.median(frequencies) * 1e6 if frequencies else None,
            shares.get(address or ""),
            (f"the card's clock was held back in {readings_held_back} of {READINGS} readings",)
            if readings_held_back
            else (),
        )
        if card_reading.frequency is not None and card_reading.utilisation is not None:
            return card_reading
        return self._query(step, synchronise, tool, address, card_reading)

    def accounts(self) -> dict[str, dict[str, Busy]]:
        """Return the engines' counters for this process by PCI address, from the kernel."""
        by_card: dict[str, dict[str, Busy]] = {}
        clients = set()
        for path in sorted((self.root / "proc/self/fdinfo").glob("*")):
            fields = dict(re.findall(r"^(drm-[\w-]+):\s*(\S+)", kernel_files.text(path) or "", re.MULTILINE))
            client = (fields.get("drm-pdev"), fields.get("drm-client-id"))
            if None in client or client in clients:
                continue  # not a card, or a second descriptor of the same client
            clients.add(client)
            engines = by_card.setdefault(fields["drm-pdev"], {})
            for name, value in fields.items():
                if name.startswith("drm-engine-") and not name.startswith("drm-engine-capacity-"):
                    _add(engines, name.removeprefix("drm-engine-"), float(value) / 1e9, 0.0)
                elif name.startswith("drm-cycles-"):
                    engine = name.removeprefix("drm-cycles-")
                    _add(engines, engine, float(value), float(fields.get(f"drm-total-cycles-{engine}", 0)))
        return by_card

    def used(self) -> str | None:
        """Return the PCI address of the card whose engines this process has used most. None: the kernel has no data."""
        work = {address: sum(x.worked for x in engines.values()) for address, engines in self.accounts().items()}
        return max(work, key=lambda address: work[address]) if any(work.values()) else None

    def _clocks(self) -> Iterator[tuple[str, float]]:
        for address, card in energy.intel_cards(self.root).items():
            texts = [kernel_files.text(path) or "" for pattern in _CLOCKS for path in card.glob(pattern)]
            if clocks := [int(text) for text in texts if text.isdigit()]:
                yield address, float(max(clocks))

    def _throttled(self) -> Iterator[tuple[str, bool]]:
        for address, card in energy.intel_cards(self.root).items():
            yield address, any(kernel_files.text(path) == "1" for pattern in _THROTTLES for path in card.glob(pattern))

    @staticmethod
    def _only(clocks: Sequence[Mapping[str, float]]) -> str | None:
        """Return the only card. None if there are several."""
        names = {name for reading in clocks for name in reading}
        return names.pop() if len(names) == 1 else None

    def _query(
        self,
        step: Callable[[], None],
        synchronise: Callable[[], None],
        tool: Tool | None,
        card: str | None,
        record: CardReading,
    ) -> CardReading:
        """Run the vendor's tool while steps go on."""
        program = self.find(tool.command[0]) if tool else None
        if tool is None or program is None or card is None:
            return record
        command = [program, *(word.format(card=card) for word in tool.command[1:])]
        with subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as process:
            reading = self._answered(process, step, synchronise, tool)
            process.kill()
        if reading is None:
            return record
        busy, clock = (float(value) for value in reading.groups())
        return CardReading(
            clock * 1e6 if record.frequency is None else record.frequency,
            busy / 100 if record.utilisation is None else record.utilisation,
            record.notes,
        )

    def _answered(
        self, process: subprocess.Popen[bytes], step: Callable[[], None], synchronise: Callable[[], None], tool: Tool
    ) -> re.Match[str] | None:
        """Step until the tool has printed a line with both numbers, has ended, or takes too long."""
        assert process.stdout is not None  # noqa: S101 - opened with a pipe
        os.set_blocking(process.stdout.fileno(), False)
        printed = b""
        until = self.clock() + PATIENCE
        while self.clock() < until:
            step()
            synchronise()
            ended = process.poll() is not None  # poll before reading, so that its last output is not missed
            printed += process.stdout.read() or b""
            match = tool.answer.search(printed.decode(errors="replace"))
            if match is not None or ended:
                return match
        return None


def _add(engines: dict[str, Busy], name: str, worked: float, total: float) -> None:
    busy = engines.get(name, Busy(0.0, 0.0))
    engines[name] = Busy(busy.worked + worked, max(busy.total, total))


def _shares(
    before: Mapping[str, Mapping[str, Busy]], after: Mapping[str, Mapping[str, Busy]], seconds: float
) -> dict[str, float]:
    """Return the utilisation of the busiest engine of each card that did anything."""
    by_engine = {}
    for address, engines in after.items():
        shares = []
        for name, now in engines.items():
            then = before.get(address, {}).get(name, Busy(0.0, 0.0))
            total = now.total - then.total if now.total else seconds
            shares.append((now.worked - then.worked) / total if total > 0 else 0.0)
        if shares and max(shares) > 0:
            by_engine[address] = min(1.0, max(shares))
    return by_engine
