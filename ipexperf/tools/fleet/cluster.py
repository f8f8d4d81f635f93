"""A fleet on a Ray cluster. The one file that knows Ray."""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
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
HEALTH_SECONDS = 60.0
"""Longest wait for Ray's own check. It loads Ray, for which a busy host needs many seconds."""
LEFT = (None, 1, 3, 4)
"""Ray's reasons for the death of a node that left as intended: none, expected, drained after SIGTERM, or idle."""
QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0", "RAY_DEDUP_LOGS": "0"}
"""Keeps Ray from sending usage reports, and from hiding cards from processes that reserve none."""
AUTH_MODE = "RAY_AUTH_MODE"
"""Whether Ray sends and demands a token. All processes of a cluster must agree.

Left to itself, a head demands the token that it finds in the home folder, and a host that joins does not send it.
"""
HEAD_LOST = {"RAY_gcs_rpc_server_reconnect_timeout_s": "86400", "RAY_gcs_server_port_wait_time_s": "2"}
"""What Ray does in a run that loses the head.

The first keeps Ray from killing a process that has not reached the head for a minute, because a run must report the
loss. The second lets it try twice, 41 seconds each, where the head dies while a run connects; without it 20 times.
"""


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
    path = str(beside) if beside.exists() else shutil.which("ray")
    if path is None:
        raise UsageError("the command ray is not beside this Python: pip install 'ipexperf[fleet]'")
    return path


def own_address() -> str:
    """The address at which other hosts reach this one."""
    return str(ray().util.get_node_ip_address())


class RayFleet:
    """A connection to the cluster at an address."""

    def __init__(self, address: str) -> None:
        os.environ.update({name: value for name, value in HEAD_LOST.items() if name not in os.environ})
        agree(address)
        self._ray = ray()
        self._sides: dict[str, Any] = {}
        """The actor on each host, by the host's name. It reserves nothing there."""
        # Ray would print messages about lost nodes between the lines of a run, which reports them itself.
        logging.getLogger("ray").addHandler(logging.NullHandler())
        logging.getLogger("ray").propagate = False
        self._ray._private.worker.print_to_stdstream = lambda *_, **__: None  # noqa: SLF001 - it has no option
        try:
            with _keeping_sigterm():
                self._ray.init(
                    address=address,
                    namespace="ipexperf",
                    configure_logging=False,
                    log_to_driver=False,
                    ignore_reinit_error=True,
                )
        except Exception as error:  # noqa: BLE001 - whatever Ray says of an address that is none, it is the address
            reason = " ".join(str(error).split()) or type(error).__name__
            raise UsageError(f"{address}: no Ray cluster answers there: {reason[:300]}") from None

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
        except errors.RayTaskError as error:
            return HostLostError(_brief(error.cause or error))
        except errors.RayError as error:
            return HostLostError(_brief(error))

    def close(self) -> None:
        """Leave the cluster. What was started on the hosts goes on there."""
        self._ray.shutdown()


@contextlib.contextmanager
def _keeping_sigterm() -> Iterator[None]:
    """Take back the handler of SIGTERM that Ray sets: its SystemExit would fail one test, and the run would go on."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)


def agree(address: str) -> None:
    """Send a token to the cluster at an address if it demands one, and demand none if it does not.

    Raise UsageError if no cluster answers there, for which Ray itself waits for minutes, or if the token is missing.
    """
    host, sign, port = address.removeprefix("ray://").rpartition(":")
    if address != "auto" and not (sign and port.isdecimal()):
        raise UsageError(f"{address}: expected HOST:PORT of a Ray cluster, auto, or local:NAME,NAME")
    if address != "auto":
        try:
            socket.create_connection((host, int(port)), CONNECT_SECONDS).close()
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise UsageError(f"{address}: no Ray cluster answers there: {reason}") from None
    if address.startswith("ray://"):
        return
    modes = ("disabled", "token") if _has_token() else ("disabled",)  # Ray aborts if it is to send one that it has not
    for mode in (os.environ[AUTH_MODE],) if AUTH_MODE in os.environ else modes:
        refusal = _refusal(address, mode)
        if not refusal:
            os.environ[AUTH_MODE] = mode
            return
        if "AuthenticationError" not in refusal:
            where = "this host is in no fleet that answers" if address == "auto" else "no Ray cluster answers there"
            raise UsageError(f"{address}: {where}")
    wanted = "the head asks for a token: copy ~/.ray/auth_token of the head to this host, or set RAY_AUTH_TOKEN"
    raise UsageError(f"{address}: {wanted}")


def _has_token() -> bool:
    """Whether Ray would find a token of this user."""
    file = Path(os.environ.get("RAY_AUTH_TOKEN_PATH") or Path.home() / ".ray" / "auth_token")
    return bool(os.environ.get("RAY_AUTH_TOKEN")) or file.is_file()


def _refusal(address: str, mode: str) -> str:
    """Why the cluster at an address does not answer, if asked in this way. An empty text: it does."""
    command = [executable(), "health-check", *(("--address", address) if address != "auto" else ())]
    environment = {**os.environ, **QUIET, AUTH_MODE: mode}
    try:
        ended = subprocess.run(
            command, capture_output=True, text=True, timeout=HEALTH_SECONDS, check=False, env=environment
        )
    except subprocess.TimeoutExpired:
        return f"nothing within {HEALTH_SECONDS:.0f} s"
    return "" if ended.returncode == 0 else f"{ended.stdout}{ended.stderr}" or "nothing"


def _host(node: dict[str, Any]) -> Host:
    labels = {
        name.removeprefix(LABEL): value for name, value in node.get("Labels", {}).items() if name.startswith(LABEL)
    }
    gone = "" if node["Alive"] else " ".join(node.get("DeathReasonMessage", "").split())[:200] or "its node died"
    return Host(labels.pop("name"), node["NodeID"], labels, gone)


def _brief(error: BaseException) -> str:
    """The first words of Ray's message, which fills a screen."""
    lines: Sequence[str] = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = next((line for line in lines if "node" in line.lower() and "died" in line.lower()), "")
    return (text or (lines[0] if lines else type(error).__name__))[:300]
