"""The hosts of a fleet, and which of several equal hosts measures a group."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ipexperf.errors import UsageError


@dataclass(frozen=True, slots=True)
class Host:
    """A host of the fleet, as it described itself when it joined."""

    name: str
    node: str
    """Ray's id of it."""
    address: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Its devices, processor, memory and versions, and the labels of its owner. `device` may have several words."""

    def words(self, label: str) -> tuple[str, ...]:
        """The values of a label."""
        value = self.labels.get(label)
        if value is None:
            return ()
        return tuple(value.split("_")) if label == "device" else (value,)


def ghosts(hosts: Iterable[Host]) -> list[str]:
    """Names that one address has twice, because the host joined again and Ray still lists its first node."""
    return [name for (name, _), count in Counter((host.name, host.address) for host in hosts).items() if count > 1]


def check_names(hosts: Iterable[Host]) -> None:
    """Raise UsageError if two hosts have one name: the history could not tell them apart."""
    twice = [name for name, count in Counter(host.name for host in hosts).items() if count > 1]
    if twice:
        raise UsageError(
            f"two hosts of the fleet are called {twice[0]}: give one another name, by ipexperf fleet join --name"
        )


def ranked(hosts: Sequence[str], key: str) -> list[str]:
    """Order the hosts for a group: the first measures it, or the next one if that is lost.

    By rendezvous hashing: the order of two hosts depends only on them and the group. When a host leaves, only its
    groups move, and they come back when it does.
    """
    return sorted(hosts, key=lambda name: hashlib.sha256(f"{name}\0{key}".encode()).digest())
