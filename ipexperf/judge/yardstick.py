"""The unit in which speed is judged: seconds, or the time of a yardstick that took turns with the case."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ipexperf.result import PRIMARY, RELATIVE

SECTION = "yardstick"
"""The section of an environment that describes the yardstick."""


def content(environment: Mapping[str, Any]) -> str | None:
    """The uid of the yardstick that an environment's times are relative to. None: they are in seconds."""
    digest = (environment.get(SECTION) or {}).get("content")
    return None if digest is None else str(digest)


def metric(environment: Mapping[str, Any]) -> str:
    """The metric that speed is judged by."""
    return PRIMARY if content(environment) is None else RELATIVE
