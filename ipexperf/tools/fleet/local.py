"""Folders of this machine as hosts, without Ray. They wait for one another's devices, as the lease has it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from ipexperf.errors import IpexperfError, UsageError
from ipexperf.tools.fleet.host_side import HostSide
from ipexperf.tools.fleet.hosts import Host, HostLostError

PREFIX = "local:"
P = ParamSpec("P")
T = TypeVar("T")


class LocalFleet:
    """Hosts that are folders, each with a checkout of its own."""

    def __init__(self, address: str) -> None:
        self._folders = [Path(text.strip()).resolve() for text in address.removeprefix(PREFIX).split(",")]
        for folder in self._folders:
            if not folder.is_dir():
                raise UsageError(f"{address}: there is no folder {folder}")
        self._sides: dict[str, HostSide] = {}

    def hosts(self) -> list[Host]:
        return [Host(folder.name, str(folder), {"device": "cpu"}) for folder in self._folders]

    def ask(
        self, hosts: Sequence[Host], method: Callable[Concatenate[HostSide, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> dict[str, T | HostLostError]:
        """The answers of these hosts, by their names."""
        answers: dict[str, T | HostLostError] = {}
        for host in hosts:
            side = self._sides.setdefault(host.name, HostSide(host.name, host.place, os.environ))
            try:
                answers[host.name] = method(side, *args, **kwargs)
            except (OSError, IpexperfError) as error:
                answers[host.name] = HostLostError(str(error))
        return answers

    def close(self) -> None:
        """Nothing to do."""
