"""Folders beside this one as the hosts of a fleet, in place of those of a Ray cluster. A command, too."""

import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ipexperf import cli
from ipexperf.errors import IpexperfError
from ipexperf.tools.fleet import cluster
from ipexperf.tools.fleet.host_side import HostSide
from ipexperf.tools.fleet.hosts import Host, HostLostError
from ipexperf.tools.fleet.membership import ENVIRONMENT, FOLDER


class FolderFleet:
    """What `RayFleet` is, for hosts whose address is `NAME,NAME:1`."""

    def __init__(self, address: str) -> None:
        self._names = address.partition(":")[0].split(",")
        self._sides: dict[str, HostSide] = {}

    def hosts(self) -> list[Host]:
        return [Host(name, str(Path.cwd().parent / name), {"name": name, "device": "cpu"}) for name in self._names]

    def ask(self, hosts: Sequence[Host], method: Callable[..., Any], *args: Any, **kwargs: Any) -> dict[str, Any]:
        return {host.name: self._answer(host, method, *args, **kwargs) for host in hosts}

    def _answer(self, host: Host, method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        try:
            return method(self._side(host), *args, **kwargs)
        except (OSError, IpexperfError) as error:
            return HostLostError(str(error))

    def _side(self, host: Host) -> HostSide:
        if host.name not in self._sides:
            os.environ |= {ENVIRONMENT: json.dumps(dict(os.environ)), FOLDER: host.place}
            self._sides[host.name] = HostSide(host.name)
            del os.environ[ENVIRONMENT], os.environ[FOLDER]
        return self._sides[host.name]

    def close(self) -> None:
        """Nothing to do."""


if __name__ == "__main__":
    cluster.RayFleet = FolderFleet  # type: ignore[misc, assignment]
    sys.exit(cli.main())
