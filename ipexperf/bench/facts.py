"""What an interpreter and its machine have, told without importing torch wherever that is possible."""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

PACKAGES = ("torch", "torchvision", "intel-extension-for-pytorch", "scikit-learn")


@dataclass(frozen=True, slots=True)
class Facts:
    """What the plan must know of the worker's interpreter to leave cells out with a reason."""

    python: str
    packages: Mapping[str, str | None]
    cpu_flags: frozenset[str] = frozenset()
    accelerators: Mapping[str, str] = field(default_factory=dict)
    """For each accelerator that was asked for: why it can't be used, or an empty text where it can."""

    def missing(self, *packages: str) -> str | None:
        """The reason for leaving a cell out when a package is not installed."""
        absent = [name for name in packages if self.packages.get(name) is None]
        return f"{' and '.join(absent)} not installed in {self.python}" if absent else None

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "cpu_flags": sorted(self.cpu_flags)}

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Facts:
        return cls(**{**document, "cpu_flags": frozenset(document["cpu_flags"])})


def cpu_flags() -> frozenset[str]:
    """The instruction sets that the kernel reports, empty where it reports none."""
    path = Path("/proc/cpuinfo")
    if path.exists():
        for line in path.read_text().splitlines():
            if line.startswith(("flags", "Features")):
                return frozenset(line.split(":", 1)[1].split())
    return frozenset()


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _accelerator(name: str) -> str:
    """Asks torch whether the accelerator can be used; an empty answer means that it can."""
    if _version("torch") is None:
        return "torch is not installed"
    import torch

    module = getattr(torch, name, None)
    if module is None:
        return f"torch {torch.__version__} has no {name} support"
    if not module.is_available():
        return f"torch {torch.__version__} sees no {name.upper()} on this machine"
    return ""


def gather(accelerators: Sequence[str] = ()) -> Facts:
    """Looks at this interpreter. Torch is imported only where an accelerator is asked for."""
    return Facts(
        python=sys.executable,
        packages={name: _version(name) for name in PACKAGES},
        cpu_flags=cpu_flags(),
        accelerators={name: _accelerator(name) for name in accelerators},
    )


def main() -> None:
    """Prints the facts as the last line of standard output, as JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--accelerators", default="")
    chosen = parser.parse_args().accelerators
    sys.stdout.write("\n" + json.dumps(gather(chosen.split(",") if chosen else ()).to_json()) + "\n")


if __name__ == "__main__":
    main()
