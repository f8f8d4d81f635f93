"""oneDNN's verbose log: recorded around a step and parsed strictly. Lines of unknown form are kept, never dropped."""

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
"""Variables that limit the instruction sets of oneDNN."""
MARK = "onednn_verbose,"
_NUMBER = r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?"
# Since version 3.5 `v1` names the format, and a timestamp may follow. Before 3.1 lines did not contain `primitive`.
_HEAD = rf"^onednn_verbose,(?:v\d+,)?(?:{_NUMBER},)?"
_PRIMITIVE = re.compile(
    rf"{_HEAD}(?:primitive,)?(?P<moment>exec|create(?:_nested)?(?::\w+)?),(?P<engine>\w+),(?P<name>\w+),(?P<implementation>[^,]*),"
    rf"(?P<direction>[^,]*),(?P<memory>[^,]*),(?P<attributes>[^,]*),(?P<algorithm>[^,]*),(?P<problem>[^,]*),(?P<time>{_NUMBER})$"
)
_PARTITION = re.compile(
    rf"{_HEAD}graph,(?P<moment>exec|compile(?::\w+)?),(?P<engine>\w+),\d+,(?P<implementation>[^,]*),(?P<operators>[^,]*),"
    rf"(?P<rest>.*),(?P<time>{_NUMBER})$"
)
_HEADER = re.compile(rf"{_HEAD}(?:(?:primitive|graph),)?info,(?P<text>.*)$")
_ISA = re.compile(r"^cpu,isa:(.*)$")
# Up to version 3.5: `src_f32::blocked:acdb`. Since then: `src:f32::blocked:acdb`.
_DTYPE = r"(?:bf|f|s|u)\d+(?:_\w+)?|e8m0|boolean|undef"
_OPERAND = re.compile(rf"^(?P<role>[a-z]+(?:_[a-z]+)*\d*)[_:](?P<dtype>{_DTYPE})(?::(?P<rest>\S*))?$")
_VALUE = re.compile(r":-?\d+(?:\.\d+(?:e[-+]?\d+)?|e[-+]?\d+)")

_found_isas: set[str] = set()
"""Headers of the libraries. Each prints its header once per process, when its log is first turned on."""


@dataclass(frozen=True, slots=True)
class Operand:
    """One operand of a primitive: its role, dtype and memory layout."""

    role: str
    dtype: str
    tag: str


@dataclass(frozen=True, slots=True)
class Primitive:
    """One line of the log: a primitive, or a fused partition of oneDNN's graph, that was created or run."""

    moment: str
    """`exec`, or how it was created: `create:cache_hit`, `create_nested:cache_miss`."""
    name: str
    implementation: str
    direction: str = ""
    operands: tuple[Operand, ...] = ()
    attributes: str = ""
    algorithm: str = ""
    problem: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class OneDnnLog:
    """A parsed log: its primitives, and each line that could not be parsed."""

    primitives: tuple[Primitive, ...]
    unparsed: tuple[str, ...]
    isas: tuple[str, ...] = ()

    @property
    def executed(self) -> list[Primitive]:
        """The primitives that ran, in order."""
        return [primitive for primitive in self.primitives if primitive.moment == "exec"]


def read(text: str) -> OneDnnLog:
    """Parse the lines of oneDNN in the output of a process."""
    primitives, unparsed, isas = [], [], []
    for line in text.splitlines():
        if not line.startswith(MARK):
            continue  # not a line of oneDNN
        if header := _HEADER.match(line):
            if isa := _ISA.match(header["text"]):
                isas.append(isa[1])
        elif (primitive := _primitive(line)) is not None:
            primitives.append(primitive)
        else:
            unparsed.append(line)
    return OneDnnLog(tuple(primitives), tuple(unparsed), tuple(isas))


def _primitive(line: str) -> Primitive | None:
    """Parse one line. Return None if any part has an unknown form."""
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
    """Remove the scratchpad, and numbers such as quantisation scales: they are data, not structure."""
    words = [word for word in text.split() if not word.startswith("attr-scratchpad")]
    return _VALUE.sub(":#", " ".join(words))


def fused(primitive: Primitive) -> tuple[str, ...]:
    """Return the operations that are fused into a primitive."""
    for word in primitive.attributes.split():
        if word.startswith("attr-post-ops:"):
            return tuple(part.split(":")[0] for part in word.removeprefix("attr-post-ops:").split("+"))
    return ()


def verbose() -> AbstractContextManager[Any]:
    """Return a context that turns on the log, including creation. IPEX's version turns on both libraries."""
    context: AbstractContextManager[Any] = torch.backends.mkldnn.verbose(torch.backends.mkldnn.VERBOSE_ON_CREATION)
    return context


def recorded(step: Callable[[], Any], verbose: AbstractContextManager[Any]) -> OneDnnLog:
    parsed = read(printed(step, verbose))
    _found_isas.update(parsed.isas)
    return parsed


def printed(step: Callable[[], Any], verbose: AbstractContextManager[Any]) -> str:
    """Return what the library prints in one step: to file descriptor 1, which is not the protocol of the worker."""
    with tempfile.TemporaryFile() as log:
        stdout = os.dup(1)
        ctypes.CDLL(None).fflush(None)  # flush what was printed before the step
        try:
            os.dup2(log.fileno(), 1)
            with verbose:
                step()
            ctypes.CDLL(None).fflush(None)
        finally:
            os.dup2(stdout, 1)
            os.close(stdout)
        log.seek(0)
        return log.read().decode(errors="replace")


def isas() -> list[str]:
    """Return the instruction sets that the libraries of this process reported."""
    return sorted(_found_isas)
