"""The labels of a host, by which `--perf-hosts` selects. A host describes itself with them when it joins."""

from __future__ import annotations

import json
import platform
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from ipexperf.bench import registry
from ipexperf.bench.machine import facts as machine
from ipexperf.bench.process import environment as surroundings
from ipexperf.errors import UsageError

LONGEST = 63
"""Ray's labels have at most so many characters, of few kinds."""
PACKAGES = {"torch": "torch", "ipex": "intel-extension-for-pytorch"}
CARD_SECONDS = 120
UNKNOWN = "unknown"
"""The label of a card that torch could not describe. Hosts with such a card are equal to no other."""


def value(text: object) -> str:
    """The text as the value of a label."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", str(text))[:LONGEST].strip("-_.") or UNKNOWN


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


KNOWN = ("name", "device", "cpu", "cores", "memory", "card", "driver", "python", "torch", "ipex")


def describe(name: str, say: Callable[[str], None]) -> dict[str, str]:
    """Return the labels of this host. Torch describes its cards in a process of its own; `say` reports problems."""
    hardware = surroundings.hardware()
    facts = machine.gather()
    cards, problem = _cards()
    labels: dict[str, object] = {
        "name": name,
        "device": "_".join(["cpu", *sorted(cards)]),
        "cpu": hardware["cpu"],
        "cores": hardware["cores"],
        "memory": round(hardware["memory"] / 2**30),
        "python": platform.python_version(),
    }
    for label, package in PACKAGES.items():
        if facts.packages.get(package):
            labels[label] = facts.packages[package]
    for kind, card in cards.items():
        labels["card"] = UNKNOWN if PROBLEM in card else card.get("properties", kind)
        if card.get("driver"):
            labels["driver"] = card["driver"]
        if reason := card.get(PROBLEM):
            say(f"torch can use {kind} here and cannot describe it: {reason}: it joins as card={UNKNOWN}")
    if problem:
        labels["card"] = UNKNOWN
        say(f"torch cannot say which cards are here: {problem}: it joins as card={UNKNOWN}, without a device of them")
    return {label: value(content) for label, content in labels.items()}


PROBLEM = "problem"
"""Key in the description of a card that says why torch cannot describe it."""


def _cards() -> tuple[dict[str, dict[str, Any]], str]:
    """Return torch's description of each kind of card on this host, and why torch failed, or an empty text."""
    command = [sys.executable, "-m", "ipexperf.tools.fleet.labels"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=CARD_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return {}, f"no answer within {CARD_SECONDS} s"
    lines = [line.strip() for line in (answer.stdout if answer.returncode == 0 else answer.stderr).splitlines()]
    last = next((line for line in reversed(lines) if line), "it says nothing")
    if answer.returncode:
        return {}, f"status {answer.returncode}, {last[:200]}"
    return json.loads(last), ""


def _look() -> dict[str, dict[str, Any]]:
    kinds = [name for name in registry.devices.names() if registry.devices.get(name).accelerator]
    usable = [name for name, reason in machine.gather(kinds).accelerators.items() if not reason]
    return {name: _description(name) for name in usable}


def _description(kind: str) -> dict[str, Any]:
    """Return torch's description of a card, or why it has none, so that one failure does not hide the other cards."""
    try:
        return dict(registry.devices.get(kind).describe())
    except Exception as error:  # noqa: BLE001 - a driver may raise anything
        return {PROBLEM: " ".join(str(error).split())[:200] or type(error).__name__}


if __name__ == "__main__":
    sys.stdout.write("\n" + json.dumps(_look(), default=str) + "\n")
