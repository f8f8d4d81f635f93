"""A fleet on a Ray cluster. The one file that knows Ray."""

from __future__ import annotations

import logging
import os
import signal
import socket
from collections.abc import Callable, Sequence
from typing import Any, Concatenate, ParamSpec, TypeVar

from ipexperf.errors import UsageError
from ipexperf.tools.fleet.host_side import HostSide
from ipexperf.tools.fleet.hosts import Host, HostLostError

P = ParamSpec("P")
T = TypeVar("T")
RESOURCE = "ipexperf"
"""What Ray calls a node that measures."""
LABEL = "ipexperf.io/"
CALL_SECONDS = 60.0
"""Time limit of a call of Ray."""
CONNECT_SECONDS = 15.0
LEFT = (None, 1, 3, 4)
"""Ray's reasons for the death of a node that left as intended: none, expected, drained after SIGTERM, or idle."""
VARIABLES = {
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # hides cards from processes that reserve none
    "RAY_AUTH_MODE": "disabled",  # unset, a head demands a token that it finds in the home folder, and no host sends it
    "RAY_USAGE_STATS_ENABLED": "0",
}
"""What all of Ray's processes have, unless the user sets it."""
HEAD_LOST = {"RAY_gcs_rpc_server_reconnect_timeout_s": "86400", "RAY_gcs_server_port_wait_time_s": "2"}
"""What Ray does in a run that loses the head.

The first keeps Ray from killing a process that has not reached the head for a minute, because a run must report the
loss. The second lets it try twice, 41 seconds each, where the head dies while a run connects; without it 20 times.
"""


def ray() -> Any:
    """The module, or UsageError if it is not installed."""
    os.environ.update({name: value for name, value in VARIABLES.items() if name not in os.environ})
    try:
        import ray as module
    except ImportError:
        raise UsageError("a fleet needs Ray: pip install 'ipexperf[fleet]'") from None
    return module


def reach(address: str) -> None:
    """Raise UsageError if nothing listens at an address. Ray itself waits there for minutes."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), CONNECT_SECONDS).close()
    except (OSError, OverflowError, ValueError) as error:
        raise UsageError(f"{address}: no Ray cluster answers there: {error}") from None


class RayFleet:
    """A connection to the cluster at an address."""

    def __init__(self, address: str) -> None:
        if address != "auto":
            reach(address)
        os.environ.update({name: value for name, value in HEAD_LOST.items() if name not in os.environ})
        self._ray = ray()
        self._sides: dict[str, Any] = {}
        """The actor on each host, by the host's name. It reserves nothing there."""
        # Ray would print messages about lost nodes between the lines of a run, which reports them itself.
        logging.getLogger("ray").addHandler(logging.NullHandler())
        logging.getLogger("ray").propagate = False
        self._ray._private.worker.print_to_stdstream = lambda *_, **__: None  # noqa: SLF001 - it has no option
        sigterm = signal.getsignal(signal.SIGTERM)
        try:
            self._ray.init(address=address, namespace="ipexperf", configure_logging=False, log_to_driver=False)
        except Exception as error:  # noqa: BLE001 - whatever Ray says of an address that is none, it is the address
            reason = " ".join(str(error).split())[:300]
            raise UsageError(
                f"{address}: no Ray cluster answers there, or its RAY_AUTH_MODE differs: {reason}"
            ) from None
        finally:
            signal.signal(signal.SIGTERM, sigterm)  # Ray's SystemExit would end this side alone

    def hosts(self) -> list[Host]:
        """The hosts, by name, with those that died and did not come back. Nodes without our resource take no part."""
        nodes = [(_host(node), node) for node in self._ray.nodes() if f"{LABEL}name" in node.get("Labels", {})]
        alive = [host for host, node in nodes if node["Alive"] and node["Resources"].get(RESOURCE)]
        here = {host.name for host in alive}
        dead = {host.name: host for host, node in nodes if not node["Alive"] and node.get("DeathReason") not in LEFT}
        return sorted([*alive, *(dead[name] for name in dead.keys() - here)], key=lambda host: host.name)

    def ask(
        self, hosts: Sequence[Host], method: Callable[Concatenate[HostSide, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> dict[str, T | HostLostError]:
        """The answers of these hosts, by their names. All are asked at once."""
        questions = {host.name: getattr(self._side(host), method.__name__).remote(*args, **kwargs) for host in hosts}
        waiting = list(questions.values())
        if waiting:
            self._ray.wait(waiting, num_returns=len(waiting), timeout=CALL_SECONDS)
        return {name: self._answer(question) for name, question in questions.items()}

    def _side(self, host: Host) -> Any:
        if host.name not in self._sides:
            from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

            pinned = NodeAffinitySchedulingStrategy(host.place, soft=False)
            options = {"num_cpus": 0, "max_restarts": 0, "max_task_retries": 0, "scheduling_strategy": pinned}
            self._sides[host.name] = self._ray.remote(HostSide).options(**options).remote(host.name)
        return self._sides[host.name]

    def _answer(self, question: Any) -> Any:
        """The answer to a question that was waited for, or the reason why there is none."""
        errors = self._ray.exceptions
        try:
            return self._ray.get(question, timeout=0)
        except errors.GetTimeoutError:
            return HostLostError(f"it did not answer within {CALL_SECONDS:.0f} s")
        except errors.RayError as error:
            return HostLostError(str(getattr(error, "cause", None) or error).strip().partition("\n")[0][:300])

    def close(self) -> None:
        """Leave the cluster. What was started on the hosts goes on there."""
        self._ray.shutdown()


def _host(node: dict[str, Any]) -> Host:
    labels = {
        name.removeprefix(LABEL): value for name, value in node.get("Labels", {}).items() if name.startswith(LABEL)
    }
    gone = "" if node["Alive"] else " ".join(node.get("DeathReasonMessage", "").split())[:200] or "its node died"
    return Host(labels["name"], node["NodeID"], labels, gone)
