"""oneDNN's log as it comes out of a process, counted while it comes: a server may print for days."""

from __future__ import annotations

from typing import Any

from ipexperf.bench.evidence import fingerprint, onednn
from ipexperf.judge import losses

KEPT = 20
"""Most lines of an unknown form to keep."""
MARK = onednn.MARK.encode()


class Heard:
    """What was heard of a process so far."""

    def __init__(self) -> None:
        self._calls: dict[onednn.Primitive, tuple[int, float]] = {}
        self._isas: dict[str, None] = {}
        self._unparsed: list[str] = []

    def take(self, line: bytes) -> bytes:
        """Take what is oneDNN's out of a line of output. Returns the rest, which is the process's own."""
        own, mark, rest = line.partition(MARK)
        if not mark:
            return line
        found = onednn.read((mark + rest).decode(errors="replace"))
        self._isas |= dict.fromkeys(found.isas)
        self._unparsed = [*self._unparsed, *found.unparsed][:KEPT]
        for primitive, (count, seconds) in fingerprint.counted(found.executed).items():
            before = self._calls.get(primitive, (0, 0.0))
            self._calls[primitive] = before[0] + count, before[1] + seconds
        return own

    def fingerprint(self) -> dict[str, Any]:
        """What ran, in the form of the fingerprints of cases, so that it is compared as they are."""
        ran = fingerprint.executed(self._calls)
        # What the log does not say is unknown, as in every such file.
        processor = {"onednn": sorted(self._isas), "threads": None, "aten": None, "limits": dict[str, str]()}
        structure = {"primitives": ran.structure, "processor": processor}
        return {
            "version": fingerprint.VERSION,
            "digest": fingerprint.digest(structure),
            "structure": structure,
            "times": {"primitives": ran.seconds},
            "beside": {},
            "unstable": [],
            "missing": {},
            "unparsed": self._unparsed,
        }


def plain(implementation: str) -> bool:
    """Whether an implementation is a plain loop, without instructions of any kind of processor."""
    return implementation.startswith(losses.PLAIN)
