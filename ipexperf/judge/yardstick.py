"""What is judged: a case's time in units of the yardstick that took turns with it, or else in seconds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ipexperf.result import PRIMARY, RELATIVE

SECTION = "yardstick"
"""The part of an environment that names it."""


def content(environment: Mapping[str, Any]) -> str | None:
    """The yardstick that an environment's times are relative to, by its content; None: they are seconds."""
    found = (environment.get(SECTION) or {}).get("content")
    return None if found is None else str(found)


def metric(environment: Mapping[str, Any]) -> str:
    """The metric that speed is judged by."""
    return PRIMARY if content(environment) is None else RELATIVE
