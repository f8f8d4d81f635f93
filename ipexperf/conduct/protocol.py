"""Parse the replies of workers. A malformed one ends the worker, and its launch is recorded as crashed."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

GREETING = "greeting"
"""The name of the message that a worker sends when it has started."""
SHOWN = 80
"""Characters of a malformed reply in the message."""


class MalformedError(ValueError):
    """A line that is no reply of the protocol. The message says why."""


def parse(line: bytes, request: str) -> dict[str, Any]:
    """The reply in this line, or a message of progress or place. Raise MalformedError if it is neither.

    Workers check what sessions of the user's own return, but no samples: that would cost time.
    """
    try:
        reply = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise MalformedError(f"{_shown(line)} is no JSON ({error})") from None
    if not isinstance(reply, dict) or not {"say", "at", "ok"} & reply.keys():
        raise MalformedError(f"{_shown(line)} is neither a reply nor a message of progress")
    if request == "sample" and reply.get("ok") and not _timed(reply.get("samples")):
        raise MalformedError(f"{_shown(line)} has wrong samples")
    return reply


def joined(*replies: Mapping[str, Any]) -> dict[str, Any]:
    """Several replies of a worker as one, with the metrics of all."""
    metrics = {name: value for reply in replies for name, value in reply.get("metrics", {}).items()}
    return {name: value for reply in replies for name, value in reply.items()} | {"metrics": metrics}


def _timed(samples: Any) -> bool:
    """Whether these are samples, each with its wall time, CPU time and run delay."""
    return isinstance(samples, list) and all(
        isinstance(sample, list) and len(sample) == 3 and all(map(_number, sample)) for sample in samples
    )


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _shown(line: bytes) -> str:
    text = line.decode(errors="replace").strip()
    return repr(text if len(text) <= SHOWN else f"{text[:SHOWN]}...")
