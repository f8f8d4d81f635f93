"""How a host describes itself when it joins: the labels that `--perf-hosts` chooses by."""

from __future__ import annotations

import json
import platform
import re
import subprocess
import sys
from typing import Any

from ipexperf.bench import registry
from ipexperf.bench.machine import facts as machine
from ipexperf.bench.process import environment as surroundings
from ipexperf.errors import UsageError

LONGEST = 63
"""Ray's labels have at most so many characters, of few kinds."""
PACKAGES = {"torch": "torch", "ipex": "intel-extension-for-pytorch"}
CARD_SECONDS = 120


def value(text: object) -> str:
    """The text as the value of a label."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", str(text))[:LONGEST].strip("-_.") or "unknown"


def own(text: str) -> tuple[str, str]:
    """A label of the user's, `NAME=VALUE`. Raises UsageError for anything else."""
    name, sign, content = text.partition("=")
    if not sign or not re.fullmatch(r"[a-z][a-z0-9_.-]*", name) or value(content) != content:
        raise UsageError(
            f"--label {text!r}: expected NAME=VALUE, of letters, digits and -_. (such as room=b2); NAME is lower case"
        )
    if name in KNOWN:
        raise UsageError(f"--label {text!r}: {name} is what the host finds out itself")
    return name, content


KNOWN = ("name", "device", "cpu", "cores", "memory", "card", "driver", "python", "torch", "ipex")


def describe(name: str) -> dict[str, str]:
    """The labels of this host. Torch is asked for cards in a process of its own."""
    hardware = surroundings.hardware()
    known = machine.gather()
    cards = _cards()
    labels: dict[str, object] = {
        "name": name,
        "device": "_".join(["cpu", *sorted(cards)]),
        "cpu": hardware["cpu"],
        "cores": hardware["cores"],
        "memory": round(hardware["memory"] / 2**30),
        "python": platform.python_version(),
    }
    for label, package in PACKAGES.items():
        if known.packages.get(package):
            labels[label] = known.packages[package]
    for card in cards.values():
        labels["card"] = card.get("properties", "unknown")
        if card.get("driver"):
            labels["driver"] = card["driver"]
    return {label: value(content) for label, content in labels.items()}


def _cards() -> dict[str, dict[str, Any]]:
    """What torch says of the cards of this host, by their kinds. One that does not answer is none."""
    command = [sys.executable, "-m", "ipexperf.fleet.labels"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=CARD_SECONDS, check=True)
        cards = json.loads(answer.stdout.strip().splitlines()[-1])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return {}
    return cards if isinstance(cards, dict) else {}


def _look() -> dict[str, dict[str, Any]]:
    kinds = [name for name in registry.devices.names() if registry.devices.get(name).accelerator]
    usable = [name for name, reason in machine.gather(kinds).accelerators.items() if not reason]
    return {name: registry.devices.get(name).describe() for name in usable}


if __name__ == "__main__":
    sys.stdout.write("\n" + json.dumps(_look(), default=str) + "\n")
