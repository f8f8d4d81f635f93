"""Diagnose why torch sees no accelerator: the first thing missing between torch and the card, and the cure.

Standard library only, with torch as an argument, so that it runs in any interpreter and in tests with a fake root.
"""

from __future__ import annotations

import ctypes
import getpass
import grp
import os
import re
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ipexperf.bench.machine import cards, kernel_files

INTEL, NVIDIA = "0x8086", "0x10de"
XPU_WHEELS = "pip install torch torchvision --index-url https://download.pytorch.org/whl/xpu"
XPU_VARIABLES = ("ZE_AFFINITY_MASK", "ONEAPI_DEVICE_SELECTOR")
CUDA_VARIABLES = ("CUDA_VISIBLE_DEVICES",)
_CARD_CLASSES = ("0x03", "0x1200")
"""PCI classes of display controllers and processing accelerators."""


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
        found = {}
        for device in sorted((self.root / cards.DEVICES).glob("*")):
            pci_class = kernel_files.text(device / "class") or ""
            if kernel_files.text(device / "vendor") == vendor and pci_class.startswith(_CARD_CLASSES):
                found[device.name] = cards.kernel_driver(device)
        return found

    def nodes(self, pattern: str) -> list[Path]:
        """Return the device files of this pattern."""
        return sorted((self.root / "dev").glob(pattern))


def main() -> None:
    """Say why no torch could use a device here, and end with 4, before gigabytes of it are fetched."""
    name = sys.argv[1]
    missing = {"xpu": _intel, "cuda": _nvidia}.get(name)
    reason = missing(Machine()) if missing else "expected DEVICE=cpu, xpu or cuda"
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
        if module.is_available():
            return ""
        diagnose = {"xpu": _xpu, "cuda": _cuda}.get(name)
        reason = diagnose(torch, machine or Machine()) if diagnose else ""
    return reason or f"torch {torch.__version__} sees no {name.upper()} on this machine"


def _xpu(torch: Any, machine: Machine) -> str:
    if not torch.xpu._is_compiled():  # noqa: SLF001 - torch has no public name for it
        return (
            f"torch {torch.__version__} is built without XPU support: install the build for Intel GPUs ({XPU_WHEELS})"
        )
    text = f"torch {torch.__version__} sees no XPU: "
    if reason := _intel(machine):
        return text + reason
    return (
        f"{text}kernel driver, permission and Level Zero are there, but no card that torch can use"
        f"{_set(machine, XPU_VARIABLES)}{_error_of(torch.xpu)}: "
        "it takes Arc, Flex, Max, Battlemage or the graphics of a Core Ultra; `sycl-ls` tells what Level Zero finds"
    )


def _intel(machine: Machine) -> str:
    """Return the first thing that is missing between any torch and an Intel GPU, or an empty text."""
    cards = machine.cards(INTEL)
    nodes = machine.nodes("dri/renderD*") or machine.nodes("dxg")  # the second is for Windows Subsystem for Linux
    if not cards and not nodes:
        return "the PCI bus has no Intel GPU, and there is no /dev/dri/renderD*"
    if cards and not any(cards.values()):
        return (
            f"no kernel driver is bound to the Intel GPU at {next(iter(cards))}: "
            "load i915 or xe (modprobe xe), or install a kernel that knows the card"
        )
    if not nodes:
        return f"{_drivers(cards)} and there is no /dev/dri/renderD*: a container needs --device /dev/dri"
    if permission := _unopenable(nodes, machine):
        return permission
    if not machine.loads("libze_loader.so.1"):
        return "the Level Zero loader libze_loader.so.1 is not installed: install libze1 (or level-zero)"
    if not machine.loads("libze_intel_gpu.so.1"):
        return (
            "the Level Zero driver libze_intel_gpu.so.1 is not installed: "
            "install libze-intel-gpu1 (or intel-level-zero-gpu)"
        )
    return _hidden(machine, XPU_VARIABLES, len(cards), "Intel GPU")


def _cuda(torch: Any, machine: Machine) -> str:
    if torch.version.cuda is None and getattr(torch.version, "hip", None) is None:
        return f"torch {torch.__version__} is built without CUDA: install a build with it (https://pytorch.org)"
    text = f"torch {torch.__version__} sees no CUDA: "
    if reason := _nvidia(machine):
        return text + reason
    # Torch's own message knows versions, such as a driver that is too old for this build.
    error = _error_of(torch.cuda) or ": no card answers"
    return f"{text}kernel driver and libcuda.so.1 are there{_set(machine, CUDA_VARIABLES)}{error}"


def _nvidia(machine: Machine) -> str:
    """Return the first thing that is missing between any torch and an NVIDIA GPU, or an empty text."""
    cards = machine.cards(NVIDIA)
    nodes = machine.nodes("nvidia[0-9]*")
    loaded = (machine.root / "proc/driver/nvidia/version").exists()
    if not nodes:
        if not cards and not loaded:
            return "the PCI bus has no NVIDIA GPU, and there is no /dev/nvidia0"
        if not loaded:
            return "NVIDIA's kernel driver is not loaded: install it, or modprobe nvidia"
        return "the kernel driver is loaded and there is no /dev/nvidia0: a container needs --gpus all"
    if permission := _unopenable(nodes, machine):
        return permission
    if not machine.loads("libcuda.so.1"):
        return "the driver's library libcuda.so.1 is not installed: a container gets it from --gpus all"
    return _hidden(machine, CUDA_VARIABLES, len(cards), "NVIDIA GPU")


def _drivers(cards: Mapping[str, str]) -> str:
    drivers = {driver for driver in cards.values() if driver}
    return f"the kernel driver {' and '.join(sorted(drivers))} is loaded" if drivers else "the PCI bus cannot be read"


def _unopenable(nodes: Sequence[Path], machine: Machine) -> str:
    """Return the sentence for device files that this user may not open."""
    if any(machine.opens(node) for node in nodes):
        return ""
    group = nodes[0].stat().st_gid
    try:
        owner = grp.getgrgid(group).gr_name
    except KeyError:
        owner = str(group)  # inside a container only the number is known
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    device_file = "/" + str(nodes[0].relative_to(machine.root))
    advice = f"add them to the group {owner} (usermod -aG {owner} {user}; log in again)"
    return f"{device_file} cannot be opened by {user}: {advice}"


def _hidden(machine: Machine, names: Sequence[str], cards: int, kind: str) -> str:
    """Return the sentence for a variable that hides all cards."""
    for name in names:
        value = machine.variables.get(name)
        if value is None:
            continue
        if not value.strip():
            return f"{name} is empty, which hides every card: unset it"
        if cards and re.fullmatch(r"[\d., ]+", value):
            numbers = [int(part.split(".")[0]) for part in value.replace(" ", "").split(",") if part]
            if all(number >= cards for number in numbers):
                return f"{name}={value} names a card that is not there: {cards} {kind}{'s' if cards > 1 else ''} found"
    return ""


def _set(machine: Machine, names: Sequence[str]) -> str:
    """Return a remark on variables that select cards, if any is set: one of them may be the reason."""
    selections = [f"{name}={machine.variables[name]}" for name in names if name in machine.variables]
    return f" with {' and '.join(selections)}" if selections else ""


def _error_of(module: Any) -> str:
    """Return torch's own error message when it is initialised, or an empty text."""
    try:
        module.init()
    except Exception as error:  # noqa: BLE001 - the first sentence of any error is the answer
        lines = str(error).strip().splitlines()
        return f" (torch says: {lines[0].strip()})" if lines else ""
    return ""


if __name__ == "__main__":
    main()
