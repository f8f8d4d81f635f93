"""The hosts of a fleet, those that `--where` chooses, and which of several equal hosts measures a group."""

from __future__ import annotations

import hashlib
import operator
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ipexperf.bench.registry import unknown
from ipexperf.errors import IpexperfError, UsageError

COMPARISON = re.compile(r"\s*([^\s()<>=!]+)\s*(>=|<=|!=|=|>|<)\s*([^\s()<>=!]+)\s*")
ORDER: dict[str, Callable[[Any, Any], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}


class HostLostError(IpexperfError):
    """A host does not answer any more. The message is the reason."""


@dataclass(frozen=True, slots=True)
class Host:
    """A host of the fleet, as it described itself when it joined."""

    name: str
    place: str
    """Ray's id of it, or its folder."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Its name, devices, processor and drivers. `device` may have several words."""
    gone: str = ""
    """Why it died, if it did."""


def chosen(hosts: Sequence[Host], test: str | None) -> list[Host]:
    """The hosts that pass a test such as `device=xpu and room!=b`, or all without a test.

    Raise UsageError if the test is wrong or no host passes.
    """
    twice = [name for name, count in Counter(host.name for host in hosts).items() if count > 1]
    if twice:
        raise UsageError(
            f"two hosts of the fleet are called {twice[0]}: give one another name, or wait a minute if it joined again"
        )
    if not hosts:
        raise UsageError("the fleet has no host: join one by ipexperf fleet join ADDRESS")
    if not test:
        return list(hosts)
    known = sorted({name for host in hosts for name in host.labels})
    comparisons = []
    for text in re.split(r"(?:^|\s)and(?:\s|$)", test):
        match = COMPARISON.fullmatch(text)
        if match is None:
            raise UsageError(f"--where {test!r}: {text.strip()!r} is no comparison such as device=xpu")
        if match[1] not in known:
            raise UsageError(f"--where {test!r}: {unknown('label', match[1], known)}")
        comparisons.append((match[1], match[2], match[3]))
    passing = [host for host in hosts if all(_passes(host, *comparison) for comparison in comparisons)]
    if not passing:
        raise UsageError(f"--where {test!r}: none of the {len(hosts)} hosts passes: ipexperf fleet hosts lists them")
    return passing


def _passes(host: Host, label: str, sign: str, expected: str) -> bool:
    """Whether a host passes a comparison. A host without the label differs from everything."""
    value = host.labels.get(label)
    values: Sequence[str] = () if value is None else value.split("_") if label == "device" else (value,)
    if sign == "!=":
        return expected not in values
    if sign == "=":
        return expected in values
    return any(ORDER[sign](_parts(value), _parts(expected)) for value in values)


def _parts(text: str) -> list[tuple[int, int, str]]:
    """A version or a number in a form that sorts: `25.9` is before `25.31`."""
    words: list[str] = re.findall(r"\d+|[A-Za-z]+", text)
    return [(1, int(word), "") if word.isdecimal() else (0, 0, word.lower()) for word in words]


def of_group(hosts: Iterable[str], group: str) -> str:
    """The host that measures a group.

    By rendezvous hashing: which of two hosts comes first depends only on them and the group. When a host leaves, only
    its groups move, and they come back when it does.
    """
    return min(hosts, key=lambda name: hashlib.sha256(f"{name}\0{group}".encode()).digest())
