"""The evidence of a verdict as a JSON document, and back."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from ipexperf.case import AGAINST
from ipexperf.result import BaselineEvidence, Evidence, MachineEvidence, PairsEvidence

OPTIONAL = ("between_sessions", "between_sessions_known", "lock", "own", "answers", "machine")
"""Left out of the document if they are None or empty."""


def document(evidence: Evidence | None) -> dict[str, Any] | None:
    """The document of this evidence. The key `against` distinguishes pairs from a baseline."""
    if evidence is None:
        return None
    return {name: value for name, value in asdict(evidence).items() if value not in (None, "") or name not in OPTIONAL}


def read(stored: Mapping[str, Any] | None) -> Evidence | None:
    """The evidence of a document. What it lacks, because an older version wrote it, has its default."""
    if not stored:
        return None
    kind = PairsEvidence if AGAINST in stored else BaselineEvidence
    values = {field.name: stored[field.name] for field in fields(kind) if field.name in stored}
    values["differences"] = tuple(values.get("differences", ()))
    if "log_ratios" in values:
        values["log_ratios"] = tuple(math.nan if ratio is None else ratio for ratio in values["log_ratios"])
    if machine := values.get("machine"):
        values["machine"] = MachineEvidence(**{**machine, "differences": tuple(machine["differences"])})
    return kind(**values)
