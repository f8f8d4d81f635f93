"""The Ray cluster of a fleet. The one file that knows Ray."""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ipexperf.errors import HostLostError, UsageError
from ipexperf.fleet.agent import Agent
from ipexperf.fleet.hosts import Host
from ipexperf.fleet.journal import Kept

RESOURCE = "ipexperf"
"""Each host has one, and the agent of a run takes it: Ray lets the runs of a host wait for one another."""
LABEL = "ipexperf.io/"
CALL_SECONDS = 60.0
"""A call that Ray does not answer within so long is not answered."""
LOOK_SECONDS = 2.0
CONNECT_SECONDS = 15.0
QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0", "RAY_DEDUP_LOGS": "0"}
"""Ray reports its use to nobody, and hides no card from what asks for none."""


def ray() -> Any:
    """The module, or UsageError if it is not installed."""
    os.environ.update({name: value for name, value in QUIET.items() if name not in os.environ})
    try:
        import ray as module
    except ImportError:
        raise UsageError("a fleet needs Ray: pip install 'ipexperf[fleet]'") from None
    return module


def executable() -> str:
    """The command `ray` of this interpreter."""
    beside = Path(sys.executable).with_name("ray")
    found = str(beside) if beside.exists() else shutil.which("ray")
    if found is None:
        raise UsageError("the command ray is not beside this Python: pip install 'ipexperf[fleet]'")
    return found


def own_address() -> str:
    """The address at which other hosts reach this one."""
    return str(ray().util.get_node_ip_address())


class Cluster:
    """A connection to the cluster at an address."""

    def __init__(self, address: str, source: str = "--perf-fleet") -> None:
        self._ray = ray()
        _check(address, source)
        # What Ray says of nodes that are gone would come between the lines of a run, which says it in its own words.
        logging.getLogger("ray").addHandler(logging.NullHandler())
        logging.getLogger("ray").propagate = False
        self._ray._private.worker.print_to_stdstream = lambda *_, **__: None  # noqa: SLF001 - it has no option
        try:
            self._ray.init(
                address=address,
                namespace="ipexperf",
                configure_logging=False,
                log_to_driver=False,
                ignore_reinit_error=True,
            )
        except Exception as error:  # noqa: BLE001 - whatever Ray says of an address that is none, it is the address
            reason = " ".join(str(error).split()) or type(error).__name__
            raise UsageError(f"{source} {address}: no Ray cluster answers there: {reason[:300]}") from None

    def hosts(self) -> list[Host]:
        """The hosts that are there, by name. Nodes without our resource take no part."""
        nodes = [node for node in self._ray.nodes() if node["Alive"] and node["Resources"].get(RESOURCE)]
        return sorted((_host(node) for node in nodes), key=lambda host: host.name)

    def alive(self, host: Host) -> bool:
        return any(node["Alive"] and node["NodeID"] == host.node for node in self._ray.nodes())

    def free(self) -> dict[str, bool]:
        """Whether each host is free, by its name: no run has an agent there."""
        from ray._private import state  # no public call tells it of each node

        available: dict[str, dict[str, float]] = state.available_resources_per_node()  # type: ignore[no-untyped-call, unused-ignore]
        return {host.name: bool(available.get(host.node, {}).get(RESOURCE)) for host in self.hosts()}

    def channel(self, host: Host, say: Callable[[str], None], *, wait: bool) -> RayChannel:
        """Start an agent on the host. If another run has one there, wait for it or raise UsageError."""
        actor = (
            self._ray.remote(Agent)
            .options(
                num_cpus=0,
                resources={RESOURCE: 1},
                max_restarts=0,
                max_task_retries=0,
                max_concurrency=4,
                scheduling_strategy=self._on(host),
            )
            .remote()
        )
        ready, told = actor.__ray_ready__.remote(), False
        while not self._ray.wait([ready], timeout=LOOK_SECONDS)[0]:
            if not self.alive(host):
                self._ray.kill(actor)
                raise UsageError("it left the fleet")
            if not self.free().get(host.name, False):
                if not wait:
                    self._ray.kill(actor)
                    raise UsageError("it is not free: another run measures there (--perf-lease fail)")
                if not told:
                    say(f"{host.name}: waiting for another run of the fleet")
                    told = True
        return RayChannel(self._ray, actor)

    def kept(self, host: Host) -> list[Kept]:
        """What the host keeps of runs that were cut off. Nothing if it does not answer."""
        actor = self._ray.remote(Agent).options(num_cpus=0, scheduling_strategy=self._on(host)).remote()
        try:
            return [Kept(*one) for one in self._ray.get(actor.kept.remote(), timeout=CALL_SECONDS)]
        except self._ray.exceptions.RayError:
            return []
        finally:
            self._ray.kill(actor)

    def _on(self, host: Host) -> Any:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        return NodeAffinitySchedulingStrategy(host.node, soft=False)

    def close(self) -> None:
        self._ray.shutdown()


def _check(address: str, source: str) -> None:
    """Raise UsageError if no cluster answers at an address. Ray itself tries for minutes."""
    host, sign, port = address.removeprefix("ray://").rpartition(":")
    if address != "auto" and not (sign and port.isdecimal()):
        raise UsageError(f"{source} {address}: expected HOST:PORT of a Ray cluster, auto, or local:NAME,NAME")
    if address != "auto":
        try:
            socket.create_connection((host, int(port)), CONNECT_SECONDS).close()
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise UsageError(f"{source} {address}: no Ray cluster answers there: {reason}") from None
    if address.startswith("ray://"):
        return
    command = [executable(), "health-check", *(("--address", address) if address != "auto" else ())]
    try:
        subprocess.run(command, capture_output=True, timeout=CONNECT_SECONDS, check=True)
    except subprocess.SubprocessError:
        where = "this host is in no fleet that answers" if address == "auto" else "no Ray cluster answers there"
        raise UsageError(f"{source} {address}: {where}") from None


def _host(node: dict[str, Any]) -> Host:
    labels = {
        name.removeprefix(LABEL): value for name, value in node.get("Labels", {}).items() if name.startswith(LABEL)
    }
    return Host(labels.pop("name", node["NodeName"]), node["NodeID"], node["NodeManagerAddress"], labels)


class RayChannel:
    """An agent on a host, called through Ray."""

    def __init__(self, module: Any, actor: Any) -> None:
        self._ray = module
        self._actor = actor

    def has(self, digest: str) -> bool:
        return bool(self._get(self._actor.has.remote(digest)))

    def install(self, archive: bytes, digest: str) -> None:
        self._get(self._actor.install.remote(archive, digest))

    def start(self, digest: str) -> None:
        self._get(self._actor.start.remote(digest))

    def send(self, lines: list[str]) -> None:
        self._get(self._actor.send.remote(lines))

    def receive(self, seconds: float) -> list[str]:
        return list(self._get(self._actor.receive.remote(seconds), seconds + CALL_SECONDS))

    def close(self) -> None:
        try:
            self._get(self._actor.close.remote())
        finally:
            self.abandon()

    def abandon(self) -> None:
        with contextlib.suppress(Exception):
            self._ray.kill(self._actor)

    def _get(self, reference: Any, seconds: float = CALL_SECONDS) -> Any:
        errors = self._ray.exceptions
        try:
            return self._ray.get(reference, timeout=seconds)
        except errors.GetTimeoutError:
            raise HostLostError(f"it did not answer within {seconds:.0f} s") from None
        except errors.RayActorError as error:
            raise HostLostError(_brief(error)) from None
        except errors.RayTaskError as error:
            raise HostLostError(f"its agent failed: {_brief(error.cause or error)}") from None
        except errors.RayError as error:
            raise HostLostError(_brief(error)) from None


def _brief(error: BaseException) -> str:
    """The first words of what Ray says: it goes on for a screen."""
    lines: Sequence[str] = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = next((line for line in lines if "node" in line.lower() and "died" in line.lower()), "")
    return (text or (lines[0] if lines else type(error).__name__))[:300]
