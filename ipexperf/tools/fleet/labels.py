"""What a host says of itself: the labels by which `--where` chooses it, and what equal hosts agree in."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping
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
LOOK_SECONDS = 120


def value(text: object) -> str:
    """The text as the value of a label."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", str(text))[:LONGEST].strip("-_.") or "unknown"


def look(folder: Path, variables: Mapping[str, str]) -> Any:
    """What this module says of this host as a program: torch is imported in a process of its own."""
    command = [sys.executable, "-m", "ipexperf.tools.fleet.labels"]
    try:
        answer = subprocess.run(
            command, cwd=folder, env=variables, capture_output=True, text=True, timeout=LOOK_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise UsageError(f"this host cannot be described: no answer within {LOOK_SECONDS} s") from None
    printed = (answer.stderr if answer.returncode else answer.stdout).strip().rpartition("\n")[2]
    if answer.returncode:
        raise UsageError(f"this host cannot be described: status {answer.returncode}, {printed[:200]}")
    return json.loads(printed)


def _look() -> dict[str, dict[str, str]]:
    kinds = [name for name in registry.devices.names() if registry.devices.get(name).accelerator]
    seen = machine.gather(dict.fromkeys(kinds, 0))
    cards = {kind: registry.devices.get(kind).describe() for kind, reason in seen.accelerators.items() if not reason}
    hardware, lock, source = surroundings.hardware(), locked.current_lock(Options()), surroundings.source(Path())
    labels = {"device": "_".join(["cpu", *sorted(cards)]), "cpu": hardware["cpu"], "cores": hardware["cores"]}
    for kind, card in cards.items():
        labels |= {"card": card.get("properties", kind)} | ({"driver": card["driver"]} if card.get("driver") else {})
    equal = {
        **{
            f"machine_key {kind}": surroundings.machine_key({**hardware, "cores": seen.cores, "accelerator": card})
            for kind, card in {"cpu": None, **cards}.items()
        },
        **{f"driver {kind}": card.get("driver") for kind, card in cards.items()},
        "python": lock.python,
        **{package.name: f"{package.version} {package.content}".strip() for package in lock.packages},
        **dict(lock.variables),
        "commit": source["commit"],
        "changes": source.get("changes"),
    }
    return {
        "labels": {name: value(content) for name, content in labels.items()},
        "equal": {name: str(content) for name, content in equal.items() if content},
    }


if __name__ == "__main__":
    sys.stdout.write("\n" + json.dumps(_look()) + "\n")
