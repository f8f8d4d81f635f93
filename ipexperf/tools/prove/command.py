"""`ipexperf prove -- COMMAND`: run any command, and say what it ran of oneDNN; beside another day, what it lost."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ipexperf.commands import console
from ipexperf.commands.lease import ending_with_us
from ipexperf.errors import UsageError
from ipexperf.proof import fingerprint, losses, onednn

LOST = 1
"""Exit status if something was lost beside the other file, and the command itself ended well."""
SHOWN = 12
"""Most kinds of primitives to show. The file has all."""
KEPT = 20
"""Most lines of an unknown form to keep."""
MARK = onednn.MARK.encode()


class OnednnLog:
    """oneDNN's log as it comes out of a process, counted while it comes: a server may print for days."""

    def __init__(self) -> None:
        self._calls: dict[onednn.Primitive, tuple[int, float]] = {}
        self._isas: dict[str, None] = {}
        self._unparsed: list[str] = []

    def take(self, line: bytes) -> bytes:
        """Take what is oneDNN's out of a line of output. Returns the rest, which is the process's own."""
        own, mark, rest = line.partition(MARK)
        if not mark:
            return line
        logged = onednn.read((mark + rest).decode(errors="replace"))
        self._isas |= dict.fromkeys(logged.isas)
        self._unparsed = [*self._unparsed, *logged.unparsed][:KEPT]
        for primitive, (count, seconds) in fingerprint.counted(logged.executed).items():
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


def add_prove(subparsers: console.Subparsers) -> None:
    purpose = "run a command, and say which kernels of oneDNN it ran: a server, a script, anything"
    parser = console.declare(subparsers, "prove", purpose, run_prove, example="prove -- python serve.py")
    parser.add_argument("command", nargs="+", metavar="-- COMMAND", help="the command with its arguments, behind --")
    parser.add_argument("--into", type=Path, metavar="FILE", help="write what it ran to this file, for --against")
    text = "compare with the file of another run, and end with status 1 if something was lost that only costs time"
    parser.add_argument("--against", type=Path, metavar="FILE", help=text)


def run_prove(arguments: argparse.Namespace) -> int:
    """Run the command to its end, with what it prints where it always went. Returns its exit status, or LOST."""
    from ipexperf.proof import structure

    before = _read(arguments.against) if arguments.against else None
    log = OnednnLog()
    status = _listen(arguments.command, log)
    ran = log.fingerprint()
    if arguments.into is not None:
        arguments.into.write_text(json.dumps(ran, indent=1) + "\n", encoding="utf-8")
    for line in _lines(ran):
        print(line, file=sys.stderr)
    if before is None:
        return status
    compared = structure.between(before, ran, gate="loss")
    for line in _compared(compared):
        print(line, file=sys.stderr)
    return status or (LOST if compared.fails else 0)


def _listen(command: list[str], log: OnednnLog) -> int:
    """Run the command. The library prints to its output, from which we take those lines out again."""
    environment = {**os.environ, "ONEDNN_VERBOSE": "1"}
    with ending_with_us(command, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None  # noqa: S101 - asked for above
        for line in process.stdout:
            if own := log.take(line):
                sys.stdout.buffer.write(own)
                sys.stdout.buffer.flush()
        code = process.wait()
    return code if code >= 0 else 128 - code


def _read(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"--against {path}: {error.strerror}") from None
    except ValueError:
        document = None
    if not isinstance(document, dict) or not OnednnLog().fingerprint().keys() <= document.keys():
        raise UsageError(f"--against {path} is no file of `ipexperf prove --into`")
    return document


def _lines(ran: Mapping[str, Any]) -> Iterator[str]:
    """What ran, the longest first."""
    rows, seconds = ran["structure"]["primitives"], ran["times"]["primitives"]
    total = sum(seconds)
    if not rows:
        yield "no primitive of oneDNN ran: the command does not use the library, or sets ONEDNN_VERBOSE itself"
        return
    calls = sum(row["calls"] for row in rows)
    isas = ", ".join(ran["structure"]["processor"]["onednn"]) or "unknown instructions"
    yield f"{calls:,} calls of oneDNN in {total:.3g} s of its own time; {isas}"
    named = [(row, time) for row, time in zip(rows, seconds, strict=True) if "primitive" in row]
    kinds: dict[tuple[str, str, str], tuple[int, float]] = {}
    for row, time in named:
        key = row["primitive"], row["implementation"], row["types"]
        count, spent = kinds.get(key, (0, 0.0))
        kinds[key] = count + row["calls"], spent + time
    ordered = sorted(kinds.items(), key=lambda item: -item[1][1])
    for (name, implementation, types), (count, spent) in ordered[:SHOWN]:
        yield f"  {100 * (spent / total if total else 0):3.0f} %  {name} {implementation} x{count:,}  {types}"
    if len(ordered) > SHOWN:
        yield f"        and {len(ordered) - SHOWN} more kinds"
    for label, picked in (
        ("REFERENCE KERNELS", [item for item in ordered if item[0][1].startswith(losses.PLAIN)]),
        ("reorders", [item for item in ordered if item[0][0] == "reorder"]),
    ):
        if picked:
            count, share = sum(calls for _, (calls, _) in picked), sum(spent for _, (_, spent) in picked)
            yield f"{label}: {count:,} calls, {100 * (share / total if total else 0):.0f} % of the time"
    if ran["unparsed"]:
        yield f"{len(ran['unparsed'])} or more lines of the log have an unknown form, such as {ran['unparsed'][0]}"


def _compared(compared: Any) -> Iterator[str]:
    """What differs from the other file, losses first."""
    if compared.outcome == "same":
        yield "the same kernels as in the other file"
    elif compared.outcome == "unknown":
        yield f"not compared: {compared.reason}"
    for loss in compared.losses:
        yield f"LOST: {loss}"
    for change in compared.changes:
        yield f"changed: {change}"
