"""A fleet on this host, without Ray, to try out a fleet. Its hosts wait for one another's devices."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from ipexperf import scratch
from ipexperf.errors import UsageError
from ipexperf.tools.fleet import host_files
from ipexperf.tools.fleet.agent import Agent
from ipexperf.tools.fleet.host_files import Snapshot
from ipexperf.tools.fleet.hosts import Host
from ipexperf.tools.fleet.link import Channel

PREFIX = "local:"
JOINED = "joined"
"""A file in a host's folder, as old as its first run."""


def named(address: str) -> bool:
    """Whether an address is of this kind: `local:NAME,NAME`."""
    return address.startswith(PREFIX)


class LocalFleet:
    """Hosts that are processes on this host, each with a folder of its own."""

    def __init__(self, address: str, cache: Path) -> None:
        names = [name.strip() for name in address.removeprefix(PREFIX).split(",")]
        if not all(name and name == Path(name).name for name in names):
            raise UsageError(f"--perf-fleet {address}: expected names of hosts, such as {PREFIX}a,b")
        self._names = names
        self._folder = cache.resolve() / "fleet" / "local"

    def hosts(self) -> list[Host]:
        numbered = enumerate(self._names)
        return [Host(name, str(number), f"{PREFIX}{number}", {"device": "cpu"}) for number, name in numbered]

    def channel(self, host: Host, say: Callable[[str], None], *, wait: bool) -> Channel:
        del say, wait  # the lease lets them wait
        folder = self._folder / host.name
        scratch.made(folder)
        if not (folder / JOINED).exists():
            (folder / JOINED).touch()
        return Agent(str(folder), dict(os.environ))

    def free(self) -> dict[str, bool]:
        """Empty: no run reserves these hosts."""
        return dict.fromkeys(self._names, True)

    def gone(self) -> dict[str, str]:
        """Empty: these hosts cannot die alone."""
        return {}

    def snapshots(self, hosts: Sequence[Host]) -> dict[str, Snapshot | str]:
        """A snapshot of each host, by its name."""
        return {host.name: self._snapshot(self._folder / host.name) for host in hosts}

    def _snapshot(self, folder: Path) -> Snapshot:
        now = time.time()
        mark = folder / JOINED
        return host_files.snapshot(folder, min(mark.stat().st_mtime, now) if mark.exists() else now, now)

    def close(self) -> None:
        """Nothing to do."""
