"""Uids, times, numbers and evidence as the database stores them. No SQL."""

from __future__ import annotations

import hashlib
import json
import math
import os
import statistics
import struct
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields
from datetime import datetime, timedelta, timezone
from typing import Any

from ipexperf.case import AGAINST
from ipexperf.errors import HistoryError
from ipexperf.verdict import BaselineEvidence, Evidence, MachineEvidence, PairsEvidence

END = datetime.max.replace(tzinfo=timezone.utc)
"""The last representable moment."""
OPTIONAL_EVIDENCE = ("between_sessions", "between_sessions_known", "lock", "own", "answers", "uncompared", "machine")
"""Fields that are left out of a document if they are None or empty."""


def canonical(document: Any) -> str:
    """Serialise a document so that equal documents give equal texts."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)


def content_uid(document: Any) -> str:
    return hashlib.sha256(canonical(document).encode()).hexdigest()


def series_uid(case_uid: str, machine_key: str, metric: str) -> str:
    return content_uid([case_uid, machine_key, metric])


def run_uid() -> str:
    """Make a UUID version 7: milliseconds since 1970, 12 bits of the fraction, then 62 random bits."""
    milliseconds, rest = divmod(time.time_ns(), 1_000_000)
    random = int.from_bytes(os.urandom(8), "big") >> 2
    return str(uuid.UUID(int=milliseconds << 80 | 7 << 76 | (rest * 4096 // 1_000_000) << 64 | 2 << 62 | random))


def now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="microseconds")


def utc(text: str) -> str:
    """Return a moment as UTC text of fixed width. Raise HistoryError if it has no time zone."""
    moment = _parsed(text)
    if moment.tzinfo is None:
        raise HistoryError(f"the time {text!r} has no time zone: write UTC as in '2026-01-31T12:00:00+00:00'.")
    try:
        return moment.astimezone(timezone.utc).isoformat(timespec="microseconds")
    except OverflowError:
        raise HistoryError(f"the time {text!r} is outside the calendar, which has the years 1 to 9999.") from None


def since_utc(text: str) -> str:
    """Parse a date or moment and return its beginning in UTC. Without a time zone it is UTC."""
    moment = _parsed(text)
    return utc(text) if moment.tzinfo else moment.replace(tzinfo=timezone.utc).isoformat(timespec="microseconds")


def period_utc(text: str) -> tuple[str, str]:
    """Return the first moment of a UTC day, such as 2026-01-31, or of a month, such as 2026-01, and of the next."""
    is_month = text.count("-") == 1
    first = since_utc(f"{text}-01" if is_month else text)
    following = later(_parsed(first), timedelta(days=32 if is_month else 1))
    if is_month and following != END:
        following = following.replace(day=1)
    return first, following.isoformat(timespec="microseconds")


def later(moment: datetime, step: timedelta) -> datetime:
    """Add a step to a moment, up to the last representable one."""
    return moment + step if moment <= END - step else END


def _parsed(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise HistoryError(f"{text!r} is not a date or time such as '2026-01-31' or '2026-01-31T12:00Z'.") from None


def finite(value: Any) -> Any:
    """Return a document as plain JSON: None for numbers that are not finite, and texts without NUL."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, Mapping):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return value


def storable(text: str) -> str:
    """Replace what a database cannot store: NUL, which the log of a crash may contain, and bytes that are not UTF-8."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode(errors="replace").decode()


def summary(
    values: Sequence[float], middle: Callable[[Sequence[float]], float] = statistics.median
) -> dict[str, float | None]:
    """Summarise the launches of one metric. The deviation of a single launch is None, not zero."""
    if not values:
        return dict.fromkeys(("median", "mean", "mad", "lo", "hi"))
    median = middle(values)
    deviation = statistics.median(abs(value - median) for value in values) if len(values) > 1 else None
    return {"median": median, "mean": statistics.fmean(values), "mad": deviation, "lo": min(values), "hi": max(values)}


def pack(values: Sequence[float]) -> bytes:
    """Encode numbers as little-endian float64."""
    return struct.pack(f"<{len(values)}d", *values)


def unpack(data: bytes) -> tuple[float, ...]:
    return struct.unpack(f"<{len(data) // 8}d", data)


def evidence_document(evidence: Evidence | None) -> dict[str, Any] | None:
    """The document of this evidence. The key `against` distinguishes pairs from a baseline."""
    if evidence is None:
        return None
    return {
        name: value
        for name, value in asdict(evidence).items()
        if value not in (None, "") or name not in OPTIONAL_EVIDENCE
    }


def kind_of_evidence(stored: Mapping[str, Any]) -> type[PairsEvidence | BaselineEvidence]:
    return PairsEvidence if AGAINST in stored else BaselineEvidence


def evidence_of(stored: Mapping[str, Any] | None) -> Evidence | None:
    """The evidence of a document. What it lacks, because an older version wrote it, has its default."""
    if not stored:
        return None
    kind = kind_of_evidence(stored)
    values = {field.name: stored[field.name] for field in fields(kind) if field.name in stored}
    values["differences"] = tuple(values.get("differences", ()))
    if "log_ratios" in values:
        values["log_ratios"] = tuple(math.nan if ratio is None else ratio for ratio in values["log_ratios"])
    if machine := values.get("machine"):
        values["machine"] = MachineEvidence(**{**machine, "differences": tuple(machine["differences"])})
    return kind(**values)
