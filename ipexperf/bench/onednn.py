"""oneDNN's own log: read strictly, recorded around a step. A line of unknown form is kept, never dropped."""

from __future__ import annotations

import ctypes
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from ipexperf.bench.lazy import torch

ISA_VARIABLES = ("ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA")
"""Variables that limit the instruction sets which oneDNN uses."""
MARK = "onednn_verbose,"
_NUMBER = r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?"
# Since version 3.5 `v1` says how a line is built, and may be followed by a moment; before 3.1 nothing said `primitive`.
_HEAD = rf"^onednn_verbose,(?:v\d+,)?(?:{_NUMBER},)?"
_PRIMITIVE = re.compile(
    rf"{_HEAD}(?:primitive,)?(?P<moment>exec|create(?:_nested)?(?::\w+)?),(?P<engine>\w+),(?P<name>\w+),(?P<implementation>[^,]*),"
    rf"(?P<direction>[^,]*),(?P<memory>[^,]*),(?P<attributes>[^,]*),(?P<algorithm>[^,]*),(?P<problem>[^,]*),(?P<time>{_NUMBER})$"
)
_PARTITION = re.compile(
    rf"{_HEAD}graph,(?P<moment>exec|compile(?::\w+)?),(?P<engine>\w+),\d+,(?P<implementation>[^,]*),(?P<operators>[^,]*),"
    rf"(?P<rest>.*),(?P<time>{_NUMBER})$"
)
_HEADER = re.compile(rf"{_HEAD}(?:(?:primitive|graph),)?info,(?P<told>.*)$")
_ISA = re.compile(r"^cpu,isa:(.*)$")
# Up to version 3.5 the library wrote `src_f32::blocked:acdb`, since then `src:f32::blocked:acdb`.
_DTYPE = r"(?:bf|f|s|u)\d+(?:_\w+)?|e8m0|boolean|undef"
_OPERAND = re.compile(rf"^(?P<role>[a-z]+(?:_[a-z]+)*\d*)[_:](?P<dtype>{_DTYPE})(?::(?P<rest>\S*))?$")
_VALUE = re.compile(r":-?\d+(?:\.\d+(?:e[-+]?\d+)?|e[-+]?\d+)")

_found_isas: set[str] = set()
"""What the libraries said of themselves: each says it once a process, whenever its log is first on."""


@dataclass(frozen=True, slots=True)
class Operand:
    """One memory of a primitive: its part in it, its dtype, and how it is laid out."""

    role: str
    dtype: str
    tag: str


@dataclass(frozen=True, slots=True)
class Primitive:
    """One line of the log: a primitive, or a fused partition of oneDNN's graph, that was made or that ran."""

    moment: str
    """`exec`, or how it was made: `create:cache_hit`, `create_nested:cache_miss`."""
    name: str
    implementation: str
    direction: str = ""
    operands: tuple[Operand, ...] = ()
    attributes: str = ""
    algorithm: str = ""
    problem: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Log:
    """All of a log: what could be read, and each line that could not."""

    primitives: tuple[Primitive, ...]
    unparsed: tuple[str, ...]
    isas: tuple[str, ...] = ()

    @property
    def executed(self) -> list[Primitive]:
        """What ran, in its order."""
        return [found for found in self.primitives if found.moment == "exec"]


def read(text: str) -> Log:
    """The lines of oneDNN's in whatever a process printed."""
    primitives, unparsed, isas = [], [], []
    for line in text.splitlines():
        if not line.startswith(MARK):
            continue  # somebody else's
        if header := _HEADER.match(line):
            if isa := _ISA.match(header["told"]):
                isas.append(isa[1])
        elif (found := _primitive(line)) is not None:
            primitives.append(found)
        else:
            unparsed.append(line)
    return Log(tuple(primitives), tuple(unparsed), tuple(isas))


def _primitive(line: str) -> Primitive | None:
    """One line, or None where any part of it has an unknown form."""
    if match := _PRIMITIVE.match(line):
        parts = match.groupdict()
        operands = tuple(_operands(parts["memory"]))
        if None in operands:
            return None
        return Primitive(
            moment=parts["moment"],
            name=parts["name"],
            implementation=parts["implementation"],
            direction=parts["direction"],
            operands=tuple(operand for operand in operands if operand is not None),
            attributes=_attributes(parts["attributes"]),
            algorithm=parts["algorithm"].removeprefix("alg:"),
            problem=parts["problem"],
            seconds=float(parts["time"]) / 1e3,
        )
    if match := _PARTITION.match(line):
        parts = match.groupdict()
        return Primitive(
            moment=parts["moment"],
            name="partition",
            implementation=parts["implementation"],
            attributes=";".join(re.sub(r"\d+$", "", word) for word in parts["operators"].split(";")),
            seconds=float(parts["time"]) / 1e3,
        )
    return None


def _operands(memory: str) -> Iterator[Operand | None]:
    for word in memory.split():
        match = _OPERAND.match(word)
        if match is None:
            yield None
            continue
        parts = (match["rest"] or "").split(":")
        yield Operand(match["role"], match["dtype"], parts[2] if len(parts) > 2 else "")


def _attributes(text: str) -> str:
    """Without the scratchpad, and without numbers such as a quantised network's scales: they are data, no structure."""
    words = [word for word in text.split() if not word.startswith("attr-scratchpad")]
    return _VALUE.sub(":#", " ".join(words))


def fused(found: Primitive) -> tuple[str, ...]:
    """What a primitive does behind its own work, without a pass over the memory of its own."""
    for word in found.attributes.split():
        if word.startswith("attr-post-ops:"):
            return tuple(part.split(":")[0] for part in word.removeprefix("attr-post-ops:").split("+"))
    return ()


def verbose() -> AbstractContextManager[Any]:
    """The log on, with what is created: IPEX puts its own in torch's place, which turns on both libraries."""
    context: AbstractContextManager[Any] = torch.backends.mkldnn.verbose(torch.backends.mkldnn.VERBOSE_ON_CREATION)
    return context


def recorded(step: Callable[[], Any], verbose: AbstractContextManager[Any]) -> Log:
    """One step with the log on. The library prints to file descriptor 1, long turned away from a worker's protocol."""
    with tempfile.TemporaryFile() as log:
        kept = os.dup(1)
        ctypes.CDLL(None).fflush(None)  # what was printed before is no part of the step
        try:
            os.dup2(log.fileno(), 1)
            with verbose:
                step()
            ctypes.CDLL(None).fflush(None)
        finally:
            os.dup2(kept, 1)
            os.close(kept)
        log.seek(0)
        found = read(log.read().decode(errors="replace"))
    _found_isas.update(found.isas)
    return found


def isas() -> list[str]:
    """The instruction sets that the libraries of this process said to use."""
    return sorted(_found_isas)
