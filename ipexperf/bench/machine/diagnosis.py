"""Why torch sees no accelerator: the first of the usual reasons that holds, with its cure.

Standard library only, with torch as an argument, so that it runs in any interpreter and in tests with a fake root.
"""

from __future__ import annotations

import ctypes
import getpass
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ipexperf.bench.machine import cards, kernel_files

INTEL, NVIDIA = cards.INTEL, "0x10de"
_CARD_CLASSES = ("0x03", "0x1200")
"""PCI classes of display controllers and processing accelerators."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What torch needs of a machine for one kind of card, and what to do where it is not there."""

    vendor: str
    card: str
    build: str
    nodes: tuple[str, ...]
    """Patterns of its device files."""
    driver: str
    """How to get device files where there is a card."""
    libraries: Mapping[str, str]
    """How to install each library of its driver."""
    variables: tuple[str, ...]
    """Variables that select cards."""


KINDS = {
    "xpu": Kind(
        INTEL,
        "Intel GPU",
        "pip install torch torchvision --index-url https://download.pytorch.org/whl/xpu",
        ("dri/renderD*", "dxg"),  # the second is for Windows Subsystem for Linux
        "load i915 or xe (modprobe xe); a container needs --device /dev/dri",
        {"libze_loader.so.1": "libze1 (or level-zero)", "libze_intel_gpu.so.1": "libze-intel-gpu1"},
        ("ZE_AFFINITY_MASK", "ONEAPI_DEVICE_SELECTOR"),
    ),
    "cuda": Kind(
        NVIDIA,
        "NVIDIA GPU",
        "https://pytorch.org",
        ("nvidia0", "nvidia[0-9]*"),
        "install NVIDIA's driver, or modprobe nvidia; a container needs --gpus all",
        {"libcuda.so.1": "NVIDIA's driver; a container needs --gpus all"},
        ("CUDA_VISIBLE_DEVICES",),
    ),
}


def _loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def _opens(path: Path) -> bool:
    return os.access(path, os.R_OK | os.W_OK)


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine as seen without torch. Tests use a fake one."""

    root: Path = Path("/")
    loads: Callable[[str], bool] = _loads
    opens: Callable[[Path], bool] = _opens
    variables: Mapping[str, str] = field(default_factory=lambda: os.environ)

    def cards(self, vendor: str) -> dict[str, str]:
        """Return the PCI addresses of a vendor's cards, each with its kernel driver."""
        drivers = {}
        for device in sorted((self.root / cards.DEVICES).glob("*")):
            pci_class = kernel_files.text(device / "class") or ""
            if kernel_files.text(device / "vendor") == vendor and pci_class.startswith(_CARD_CLASSES):
                drivers[device.name] = cards.kernel_driver(device)
        return drivers

    def missing(self, kind: Kind) -> str:
        """Return the first thing that is missing between any torch and a card, or an empty text."""
        nodes = [node for pattern in kind.nodes for node in sorted((self.root / "dev").glob(pattern))]
        if not nodes:
            seen = self.cards(kind.vendor)
            there = f"there is no /dev/{kind.nodes[0]}"
            if not seen:
                return f"{there}, and the PCI bus has no {kind.card}"
            return f"{there} for the {kind.card} at {next(iter(seen))}: {kind.driver}"
        if not any(self.opens(node) for node in nodes):
            node = f"/{nodes[0].relative_to(self.root)}"
            return (
                f"{node} cannot be opened by {_user()}: add them to its group (ls -l {node}; usermod -aG), log in again"
            )
        for library, cure in kind.libraries.items():
            if not self.loads(library):
                return f"the driver's library {library} is not installed: install {cure}"
        return ""


def main() -> None:
    """Say why no torch could use a device here, and end with 4, before gigabytes of it are fetched."""
    name = sys.argv[1]
    kind = KINDS.get(name)
    reason = Machine().missing(kind) if kind else "expected DEVICE=cpu, xpu or cuda"
    if reason:
        print(f"error: DEVICE={name} cannot be used on this machine: {reason}", file=sys.stderr)
        raise SystemExit(4)


def why_not(name: str, torch: Any, machine: Machine | None = None) -> str:
    """Return one sentence on why torch cannot use an accelerator, or an empty text if it can."""
    module = getattr(torch, name, None)
    if module is None:
        return f"torch {torch.__version__} has no {name} support"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's warning about an old driver is read below
        # Until it is initialised, torch from 2.13 on counts the cards of the driver, and not those that may be used.
        if module.is_available() and not _error_of(module):
            return ""
        sees = f"torch {torch.__version__} sees no {name.upper()}"
        kind = KINDS.get(name)
        if kind is None:
            return f"{sees} on this machine"
        if not _built(name, torch):
            return f"torch {torch.__version__} is built without {name.upper()}: install a build with it ({kind.build})"
        machine = machine or Machine()
        if reason := machine.missing(kind):
            return f"{sees}: {reason}"
        remarks = f"{selected([name], machine.variables)}{_error_of(module)}"
        return f"{sees}: its driver is there{remarks}, and no card that torch can use"


def _built(name: str, torch: Any) -> bool:
    if name == "xpu":
        return bool(torch.xpu._is_compiled())  # noqa: SLF001 - torch has no public name for it
    return torch.version.cuda is not None or getattr(torch.version, "hip", None) is not None


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def selected(names: Iterable[str], variables: Mapping[str, str]) -> str:
    """Return a remark on variables that select cards of these kinds, if any is set: one of them may be the reason."""
    selecting = [variable for name in names if name in KINDS for variable in KINDS[name].variables]
    selections = [f"{name}={variables[name]}" for name in selecting if name in variables]
    return f" with {' and '.join(selections)}" if selections else ""


def _error_of(module: Any) -> str:
    """Return torch's own error when it is initialised, or an empty text. It knows of drivers that are too old."""
    try:
        getattr(module, "init", lambda: None)()  # a device of somebody's own may have none
    except Exception as error:  # noqa: BLE001 - the first sentence of any error is the answer
        lines = str(error).strip().splitlines()
        return f" (torch says: {lines[0].strip()})" if lines else ""
    return ""


if __name__ == "__main__":
    main()
