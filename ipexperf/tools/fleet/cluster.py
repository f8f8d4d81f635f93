"""The Ray cluster of a fleet. The one file that knows Ray."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from pathlib import Path
from typing import Any

from ipexperf.errors import HostLostError, UsageError
from ipexperf.tools import codec
from ipexperf.tools.fleet.agent import Agent
from ipexperf.tools.fleet.host_files import Snapshot
from ipexperf.tools.fleet.hosts import Host

RESOURCE = "ipexperf"
"""Each host has one of this resource. The agent of a run takes it, so that other runs wait for the host."""
LABEL = "ipexperf.io/"
CALL_SECONDS = 60.0
"""Time limit of a call of Ray."""
POLL_SECONDS = 2.0
ANSWER_SECONDS = 30.0
"""Time limit for a host to describe what it does."""
CONNECT_SECONDS = 15.0
HEALTH_SECONDS = 60.0
"""Longest wait for Ray's own check. It loads Ray, for which a busy host needs many seconds."""
START_SECONDS = 60.0
"""Longest start of an agent on a free host. After it, another run is assumed to have taken the host."""
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


class RayCluster:
    """A connection to the cluster at an address."""

    def __init__(self, address: str, source: str = "--perf-fleet") -> None:
        os.environ.update({name: value for name, value in HEAD_LOST.items() if name not in os.environ})
        agree(address, source)
        self._ray = ray()
        self._observers: dict[str, Any] = {}
        """The actor that takes snapshots of each host, by the host's node."""
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
            raise UsageError(f"{source} {address}: no Ray cluster answers there: {reason[:300]}") from None

    def hosts(self) -> list[Host]:
        """The live hosts, by name. Nodes without our resource take no part."""
        nodes = [node for node in self._nodes() if node["Alive"] and node["Resources"].get(RESOURCE)]
        return sorted((_host(node) for node in nodes), key=lambda host: host.name)

    def gone(self) -> dict[str, str]:
        """The hosts that died and did not come back, each with Ray's reason. Those that left are not among them."""
        here = {host.name for host in self.hosts()}
        dead = [node for node in self._nodes() if not node["Alive"] and node.get("DeathReason") not in LEFT]
        names = {node.get("Labels", {}).get(f"{LABEL}name"): node.get("DeathReasonMessage", "") for node in dead}
        return {name: " ".join(text.split())[:200] for name, text in names.items() if name and name not in here}

    def alive(self, host: Host) -> bool:
        return any(node["Alive"] and node["NodeID"] == host.node for node in self._nodes())

    def _nodes(self) -> list[dict[str, Any]]:
        nodes: list[dict[str, Any]] = _answer_of_head(self._ray.nodes)
        return nodes

    def free(self) -> dict[str, bool]:
        """Whether each host is free, by its name: no run has an agent there."""
        from ray._private import state  # no public call has it for each node

        available: dict[str, dict[str, float]] = _answer_of_head(state.available_resources_per_node)
        return {host.name: bool(available.get(host.node, {}).get(RESOURCE)) for host in self.hosts()}

    def channel(self, host: Host, say: Callable[[str], None], *, wait: bool) -> RayChannel:
        """Start an agent on the host. If another run has one there, wait for it or raise UsageError."""
        began, was_free = time.monotonic(), self.free().get(host.name, False)
        options = {"num_cpus": 0, "resources": {RESOURCE: 1}, "scheduling_strategy": self._pinned_to(host)}
        options |= {"max_restarts": 0, "max_task_retries": 0, "max_concurrency": 4}
        actor = _answer_of_head(self._ray.remote(Agent).options(**options).remote)
        start, announced = actor.__ray_ready__.remote(), False
        while not self._ray.wait([start], timeout=POLL_SECONDS)[0]:
            if not self.alive(host):
                self._ray.kill(actor)
                raise UsageError("it left the fleet")
            if was_free and time.monotonic() - began < START_SECONDS:
                continue  # our own agent has taken it
            if not self.free().get(host.name, False):
                if not wait:
                    self._ray.kill(actor)
                    raise UsageError("it is not free: another run measures there (--perf-lease fail)")
                if not announced:
                    say(f"{host.name}: waiting for another run of the fleet")
                    announced = True
        return RayChannel(self._ray, actor)

    def snapshots(self, hosts: Sequence[Host]) -> dict[str, Snapshot | str]:
        """A snapshot of each host, by its name, or why it does not answer. All are asked at once."""
        requests = [self._observer(host).look.remote() for host in hosts]
        answered, _ = self._ray.wait(requests, num_returns=len(requests), timeout=ANSWER_SECONDS)
        answers: dict[str, Snapshot | str] = {}
        for host, request in zip(hosts, requests, strict=True):
            try:
                if request in answered:
                    answers[host.name] = codec.record(Snapshot, json.loads(_get(self._ray, request, CALL_SECONDS)))
                    continue
                reason = f"nothing within {ANSWER_SECONDS:.0f} s"
            except HostLostError as error:
                reason = str(error)
            except ValueError as error:
                reason = f"what it says cannot be read: {error}"
            answers[host.name] = reason
            self._dismiss(host.node)  # so that the next request starts a new actor
        return answers

    def _observer(self, host: Host) -> Any:
        """An actor that reserves nothing on the host. It stays until the connection is closed."""
        if host.node not in self._observers:
            options = {"num_cpus": 0, "max_restarts": 0, "scheduling_strategy": self._pinned_to(host)}
            self._observers[host.node] = self._ray.remote(Agent).options(**options).remote()
        return self._observers[host.node]

    def _dismiss(self, node: str) -> None:
        with contextlib.suppress(Exception):
            self._ray.kill(self._observers.pop(node))

    def _pinned_to(self, host: Host) -> Any:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        return NodeAffinitySchedulingStrategy(host.node, soft=False)

    def close(self) -> None:
        for node in list(self._observers):
            self._dismiss(node)
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


def _answer_of_head(question: Callable[[], Any]) -> Any:
    """Return the answer of the head. Raise UsageError if there is none in CALL_SECONDS: Ray would wait for hours."""
    answer: Future[Any] = Future()

    def ask() -> None:
        try:
            answer.set_result(question())
        except Exception as error:  # noqa: BLE001 - raised again below, in the thread that waits
            answer.set_exception(error)

    threading.Thread(target=ask, daemon=True).start()
    if not wait_for([answer], CALL_SECONDS).done:
        raise UsageError(f"the head of the fleet did not answer within {CALL_SECONDS:.0f} s")
    return answer.result()


def agree(address: str, source: str) -> None:
    """Send a token to the cluster at an address if it demands one, and demand none if it does not.

    Raise UsageError if no cluster answers there, for which Ray itself waits for minutes, or if the token is missing.
    """
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
    modes = ("disabled", "token") if _has_token() else ("disabled",)  # Ray aborts if it is to send one that it has not
    for mode in (os.environ[AUTH_MODE],) if AUTH_MODE in os.environ else modes:
        refusal = _refusal(address, mode)
        if not refusal:
            os.environ[AUTH_MODE] = mode
            return
        if "AuthenticationError" not in refusal:
            where = "this host is in no fleet that answers" if address == "auto" else "no Ray cluster answers there"
            raise UsageError(f"{source} {address}: {where}")
    wanted = "the head asks for a token: copy ~/.ray/auth_token of the head to this host, or set RAY_AUTH_TOKEN"
    raise UsageError(f"{source} {address}: {wanted}")


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
    return Host(labels.pop("name", node["NodeName"]), node["NodeID"], node["NodeManagerAddress"], labels)


class RayChannel:
    """An agent on a host, called through Ray."""

    def __init__(self, module: Any, actor: Any) -> None:
        self._ray = module
        self._actor = actor

    def has(self, digest: str) -> bool:
        return bool(self._get(self._actor.has.remote(digest)))

    def install(self, archive: bytes, digest: str) -> None:
        if not self.has(digest):
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
        return _get(self._ray, reference, seconds)


def _get(module: Any, reference: Any, seconds: float) -> Any:
    """The answer of an agent. Raises HostLostError if there is none."""
    errors = module.exceptions
    try:
        return module.get(reference, timeout=seconds)
    except errors.GetTimeoutError:
        raise HostLostError(f"it did not answer within {seconds:.0f} s") from None
    except errors.ActorUnavailableError:  # Ray says "temporarily", but the call may have been made
        raise HostLostError("its agent cannot be reached any more") from None
    except errors.RayTaskError as error:
        raise HostLostError(f"its agent failed: {_brief(error.cause or error)}") from None
    except errors.RayError as error:
        raise HostLostError(_brief(error)) from None


def _brief(error: BaseException) -> str:
    """The first words of Ray's message, which fills a screen."""
    lines: Sequence[str] = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = next((line for line in lines if "node" in line.lower() and "died" in line.lower()), "")
    return (text or (lines[0] if lines else type(error).__name__))[:300]
