"""Facts about an interpreter and its machine, gathered without importing torch if possible."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import re
import shlex
import shutil
import sys
import sysconfig
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ipexperf.bench.machine import kernel_files, libraries
from ipexperf.bench.machine.placement import OPENMP

PACKAGES: tuple[str, ...] = (
    "torch",
    "torchvision",
    "intel-extension-for-pytorch",
    "oneccl_bind_pt",
    "torchao",
    "transformers",
)


PT2E_HOMES = ("torch.ao.quantization", "torchao.quantization.pt2e")
"""Packages that have the tools of PT2E quantisation. Torch's own first; later versions lack it."""
PT2E_STEPS = "quantize_pt2e"
PYTHON_H, LEVEL_ZERO_H = "Python.h", "level_zero/ze_api.h"
HEADERS = {PYTHON_H: "python3-dev", LEVEL_ZERO_H: "libze-dev and intel-ocloc"}
"""Headers without which torch cannot compile, each with Debian's packages that have it."""
PT2E_QUANTIZER = "_inductor_quantizer"
"""How the modules of quantizers end whose patterns inductor lowers to int8."""


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts about the workers' interpreter and machine by which the plan leaves cells out."""

    python: str
    packages: Mapping[str, str | None]
    cpu_flags: frozenset[str] = frozenset()
    accelerators: Mapping[str, str] = field(default_factory=dict)
    """For each requested accelerator: why it cannot be used, or an empty text."""
    cards: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    """For each usable accelerator: what torch tells of each card from the chosen one on."""
    cores: int = field(default_factory=lambda: len(os.sched_getaffinity(0)))
    """Number of cores that a worker may use."""
    compiler: str = ""
    """The C++ compiler that torch.compile would call, or an empty text."""
    headers: frozenset[str] = frozenset()
    """Those of HEADERS that a compiler would find."""
    iomp5: str = ""
    """Path of Intel's OpenMP runtime, or an empty text."""
    pt2e: Mapping[str, str] = field(default_factory=dict)
    """The quantizers of exported graphs that are installed (`Device.quantizer`), each with its package."""

    def missing(self, *packages: str) -> str | None:
        """Return why a cell is left out if a package is not installed, or None."""
        absent = [name for name in packages if self.packages.get(name) is None]
        return f"{' and '.join(absent)} not installed in {shlex.quote(self.python)}{_cure(absent)}" if absent else None

    def float64(self, device: str) -> bool:
        """Return False if torch says that the card has no float64, such as Arc A-series."""
        return all(card["float64"] for card in self.cards.get(device, ())[:1])

    def no_compiler(self) -> str | None:
        """Return why a cell is left out if torch finds no compiler, or None."""
        return None if self.compiler else "torch.compile needs a C++ compiler: no g++ in PATH, and CXX names none"

    def uncompiled(self) -> str | None:
        """Return why a cell is left out if torch cannot compile what Python then loads, or None."""
        return self.no_compiler() or self.lacks_header(PYTHON_H)

    def lacks_header(self, name: str) -> str | None:
        """Return why a cell is left out if compiling for its device needs a header that is not there, or None."""
        if name in self.headers:
            return None
        return f"torch.compile needs the header {name}: install {HEADERS[name]}, or name its folder in CPATH"

    @property
    def driver(self) -> str:
        """The version of the driver of the chosen card, or an empty text."""
        return next((str(seen[0].get("driver", "")) for seen in self.cards.values()), "")

    def without(self, openmp: str) -> str | None:
        """Return why a cell is left out if the OpenMP runtime of its mode is missing, or None."""
        if openmp != "iomp5" or self.iomp5:
            return None
        return f"it needs Intel's OpenMP, and {self.python} has no libiomp5.so: pip install intel-openmp"

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "cpu_flags": sorted(self.cpu_flags), "headers": sorted(self.headers)}

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Facts:
        sets = {name: frozenset(document[name]) for name in ("cpu_flags", "headers")}
        return cls(**{**document, **sets})


def _cure(packages: Sequence[str]) -> str:
    """Return how to install the extra of ipexperf that brings all of these packages, the last if several do."""
    extras: dict[str, set[str]] = {}
    for requirement in importlib.metadata.requires("ipexperf") or ():
        if found := re.match(r"([\w.-]+).*extra == ['\"](\w+)", requirement):
            extras.setdefault(found[2], set()).add(found[1])
    fitting = [extra for extra, brought in extras.items() if {*packages} <= brought]
    return f": pip install 'ipexperf[{fitting[-1]}]' there" if fitting else ""


def cpu_flags() -> frozenset[str]:
    """Return the CPU flags that the kernel reports. Empty if it reports none."""
    for line in (kernel_files.text("/proc/cpuinfo") or "").splitlines():
        if line.startswith(("flags", "Features")):
            return frozenset(line.split(":", 1)[1].split())
    return frozenset()


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _accelerator(name: str) -> str:
    """Ask torch why an accelerator cannot be used. An empty text means that it can."""
    if _version("torch") is None:
        return "torch is not installed"
    import torch

    from ipexperf.bench.machine import diagnosis

    return diagnosis.why_not(name, torch)


def _cards(name: str) -> list[dict[str, Any]]:
    """Ask torch for the cards that it sees, and what each of them is."""
    import torch

    module = getattr(torch, name)
    tell = getattr(module, "get_device_properties", lambda _: None)  # a device of somebody's own may have none
    return [_card(tell(index)) for index in range(module.device_count())]


def _card(properties: Any) -> dict[str, Any]:
    return {
        "name": str(getattr(properties, "name", "")),
        "memory": int(getattr(properties, "total_memory", 0)),
        "driver": str(getattr(properties, "driver_version", "")),
        "float64": bool(getattr(properties, "has_fp64", True)),
        "integrated": any(getattr(properties, word, False) for word in ("is_integrated_gpu", "is_integrated")),
    }


def _not_this_card(name: str, seen: Sequence[Mapping[str, Any]], index: int) -> str:
    """Return why the card with this index is not to be measured, or an empty text."""
    if index >= len(seen):
        return f"there is no {name} device {index}: torch sees {len(seen)}, counted from 0"
    apart = next((number for number, card in enumerate(seen) if not card["integrated"]), None)
    if not seen[index]["integrated"] or apart is None:
        return ""
    return (
        f"{name} device {index}, {seen[index]['name']}, is part of the processor: --device {name}:{apart} takes "
        f"{seen[apart]['name']}, and with a mask that shows the former alone it is measured"
    )


def _includes() -> list[Path]:
    """Return the folders in which a compiler that torch calls looks for headers, Python's own among them."""
    paths = [os.environ.get(name, "") for name in ("CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH")]
    folders = [folder for path in paths for folder in path.split(os.pathsep) if folder]
    python = Path(sysconfig.get_path("include"))
    prefixes = [os.environ.get("ZE_PATH", ""), sys.prefix, "/usr/local", "/usr"]
    own = importlib.util.find_spec("triton")
    bundled = [Path(place, "backends", "intel", "include") for place in (own and own.submodule_search_locations) or ()]
    return [python, *map(Path, folders), *(Path(prefix, "include") for prefix in prefixes if prefix), *bundled]


def pt2e_homes() -> dict[str, str]:
    """Return the installed quantizers of PT2E, each with its package. Looks at files, imports nothing."""
    homes: dict[str, str] = {}
    for home in PT2E_HOMES:
        for folder in _folders(home):
            if (folder / f"{PT2E_STEPS}.py").is_file():
                for file in (folder / "quantizer").glob(f"*{PT2E_QUANTIZER}.py"):
                    homes.setdefault(file.stem.removesuffix(PT2E_QUANTIZER), home)
    return homes


def _folders(module: str) -> list[Path]:
    package, *inside = module.split(".")
    try:
        spec = importlib.util.find_spec(package)
    except ImportError:  # raised by custom finders only, never by Python's own
        return []
    return [Path(place, *inside) for place in (spec and spec.submodule_search_locations) or ()]


def gather(accelerators: Mapping[str, int] | None = None, packages: Iterable[str] = ()) -> Facts:
    """Gather the facts of this interpreter, and of the cards with these indices among those that it may see.

    Torch is imported only if an accelerator is requested.
    """
    first = accelerators or {}
    devices = {name: _accelerator(name) for name in first}
    cards = {name: _cards(name) for name, reason in devices.items() if not reason}
    includes = _includes()
    refused = {name: reason for name, seen in cards.items() if (reason := _not_this_card(name, seen, first[name]))}
    return Facts(
        # Before torch is imported: if OpenMP binds its threads, the first of them is left with one core.
        cores=len(os.sched_getaffinity(0)),
        python=sys.executable,
        packages={name: _version(name) for name in dict.fromkeys((*PACKAGES, *packages))},
        cpu_flags=cpu_flags(),
        accelerators={**devices, **refused},
        cards={name: seen[first[name] :] for name, seen in cards.items() if name not in refused},
        compiler=shutil.which(os.environ.get("CXX") or "g++") or "",
        headers=frozenset(name for name in HEADERS if any((folder / name).is_file() for folder in includes)),
        iomp5=libraries.find("iomp5", OPENMP["iomp5"], libraries.folders(*libraries.prefixes())) or "",
        pt2e=pt2e_homes(),
    )


def main() -> None:
    """Write the facts as JSON to a separate descriptor, because this interpreter may print anything."""
    into, question = sys.argv[1:]
    with os.fdopen(int(into), "w", encoding="utf-8") as reply:
        json.dump(gather(**json.loads(question)).to_json(), reply)


if __name__ == "__main__":
    main()
