"""The labels of a host, by which `--where` chooses, and what equal hosts agree in. A host describes itself."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ipexperf.bench import registry
from ipexperf.bench.machine import facts as machine
from ipexperf.bench.process import environment as surroundings
from ipexperf.compare import locked
from ipexperf.errors import UsageError
from ipexperf.plan.options import Options

LONGEST = 63
"""Ray's labels have at most so many characters, of few kinds."""
PACKAGES = {"torch": "torch", "ipex": "intel-extension-for-pytorch"}
LOOK_SECONDS = 120
KNOWN = ("name", "device", "cpu", "cores", "memory", "card", "driver", "python", "torch", "ipex")


def value(text: object) -> str:
    """The text as the value of a label."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", str(text))[:LONGEST].strip("-_.") or "unknown"


def parse(text: str) -> tuple[str, str]:
    """Parse a label of the user's, `NAME=VALUE`. Raise UsageError for anything else."""
    name, sign, content = text.partition("=")
    if not sign or not re.fullmatch(r"[a-z][a-z0-9_.-]*", name) or value(content) != content:
        raise UsageError(
            f"--label {text!r}: expected NAME=VALUE, of letters, digits and -_. (such as room=b2); NAME is lower case"
        )
    if name in KNOWN:
        raise UsageError(f"--label {text!r}: {name} is what the host finds out itself")
    return name, content


def describe(name: str, say: Callable[[str], None]) -> dict[str, str]:
    """The labels of this host. `say` reports why its cards are not among them."""
    hardware = surroundings.hardware()
    versions = machine.gather().packages
    try:
        cards = look()["cards"]
    except UsageError as error:
        say(f"torch cannot say which cards are here, so none is used to choose this host by: {error}")
        cards = {}
    labels: dict[str, object] = {
        "name": name,
        "device": "_".join(["cpu", *sorted(cards)]),
        "cpu": hardware["cpu"],
        "cores": hardware["cores"],
        "memory": round(hardware["memory"] / 2**30),
        "python": platform.python_version(),
        **{label: versions[package] for label, package in PACKAGES.items() if versions.get(package)},
    }
    for kind, card in cards.items():
        labels |= {"card": card.get("properties", kind)} | ({"driver": card["driver"]} if card.get("driver") else {})
    return {label: value(content) for label, content in labels.items()}


def look(folder: Path = Path(), variables: Mapping[str, str] = os.environ) -> Any:
    """What this module says of this host as a program: torch is imported in a process of its own."""
    command = [sys.executable, "-m", "ipexperf.tools.fleet.labels"]
    try:
        answer = subprocess.run(
            command, cwd=folder, env=variables, capture_output=True, text=True, timeout=LOOK_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise UsageError(f"no answer within {LOOK_SECONDS} s") from None
    lines = (answer.stderr if answer.returncode else answer.stdout).split("\n")
    last = next((line for line in reversed(lines) if line.strip()), "it says nothing")
    if answer.returncode:
        raise UsageError(f"status {answer.returncode}, {last.strip()[:200]}")
    return json.loads(last)


def _look() -> dict[str, dict[str, Any]]:
    kinds = [name for name in registry.devices.names() if registry.devices.get(name).accelerator]
    seen = machine.gather(dict.fromkeys(kinds, 0))
    cards = {kind: registry.devices.get(kind).describe() for kind, reason in seen.accelerators.items() if not reason}
    hardware, lock, source = surroundings.hardware(), locked.current_lock(Options()), surroundings.source(Path())
    keys = {
        f"machine_key {kind}": surroundings.machine_key({**hardware, "cores": seen.cores, "accelerator": card})
        for kind, card in {"cpu": None, **cards}.items()
    }
    equal = {
        **keys,
        **{f"driver {kind}": card.get("driver") for kind, card in cards.items()},
        "python": lock.python,
        **{package.name: f"{package.version} {package.content}".strip() for package in lock.packages},
        **dict(lock.variables),
        "commit": source["commit"],
        "changes": source.get("changes"),
    }
    return {"cards": cards, "equal": {name: str(content) for name, content in equal.items() if content}}


if __name__ == "__main__":
    sys.stdout.write("\n" + json.dumps(_look(), default=str) + "\n")
