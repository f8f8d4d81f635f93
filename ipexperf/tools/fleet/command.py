"""`ipexperf fleet`: make a fleet of hosts, join it, run a command on all of them, leave it."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

from ipexperf.commands import console, progress
from ipexperf.errors import UsageError
from ipexperf.plan.values import positive
from ipexperf.tools.fleet.membership import ENVIRONMENT, FOLDER

PORT = 6379
STORE_BYTES = 128 * 2**20
"""Memory for what Ray passes between hosts: lines of text, and the histories of runs."""
RECORDED = ("--perf-db", "--db")
ADDRESS = re.compile(r"[^/\s]+:\d+")
CALM = {
    "RAY_memory_monitor_refresh_ms": "0",  # kills what uses much memory
    "RAY_enable_metrics_collection": "0",
    "RAY_kill_child_processes_on_worker_exit": "false",  # a command ends by itself when we are gone
    "RAY_worker_niceness": "0",  # 15 otherwise: everybody else would come first
}
"""Variables that keep Ray from disturbing or ending a measurement."""


def add_fleet(subparsers: console.Subparsers) -> None:
    purpose = "run one command on many hosts (on Ray), and merge what they record"
    parser = console.declare(subparsers, "fleet", purpose, topic=console.HOSTS, example="fleet run -- pytest suites/")
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    up = console.declare(actions, "up", "make this host the head of a new fleet, and one of its hosts", run_up)
    up.add_argument("--port", type=positive, default=PORT, help=f"where other hosts join (default: {PORT})")
    up.add_argument("--head-only", action="store_true", help="measure nothing on this host")
    _add_host(up)
    join = console.declare(actions, "join", "let this host measure for the fleet at an address", run_join)
    join.add_argument("address", metavar="HOST:PORT", help="what `ipexperf fleet up` printed")
    _add_host(join)
    run = console.declare(
        actions, "run", "run a command on each host, and bring what it records into the history here", run_run
    )
    _add_where(run)
    run.add_argument("--share", action="store_true", help="deal the cases out over the hosts, which must be equal")
    text = "what each host runs in its folder, such as pytest suites/, and before it the fleet if it is not this host's"
    run.add_argument("words", nargs="*", metavar="[HOST:PORT] -- COMMAND", help=text)
    console.add_history(run)
    collect = console.declare(actions, "collect", "bring what hosts recorded for a run that was cut off", run_collect)
    _add_fleet(collect)
    console.add_history(collect)
    hosts = console.declare(actions, "hosts", "list the hosts, and whether each is free, busy or gone", run_hosts)
    _add_fleet(hosts)
    down = console.declare(actions, "down", "leave the fleet: end Ray on this host, and what runs in it", run_down)
    _add_folder(down)


def _add_fleet(parser: argparse.ArgumentParser) -> None:
    text = "the fleet (default: that of this host)"
    parser.add_argument("address", nargs="?", default="auto", metavar="HOST:PORT", help=text)
    _add_where(parser)


def _add_where(parser: argparse.ArgumentParser) -> None:
    text = "only the hosts that pass, such as 'device=xpu and driver>=25'"
    parser.add_argument("--where", metavar="TEST", help=text)


def _add_host(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--name", default=platform.node(), help="the host's name in the fleet (default: its own)")
    _add_folder(parser)
    text = "do not return: the host is in the fleet as long as this command runs (Slurm, Kubernetes, systemd)"
    parser.add_argument("--block", action="store_true", help=text)


def _add_folder(parser: argparse.ArgumentParser) -> None:
    text = "the checkout in which the host runs what it is told (default: this folder)"
    parser.add_argument("--folder", type=Path, default=Path(), metavar="DIR", help=text)


def run_up(arguments: argparse.Namespace) -> int:
    from ipexperf.tools.fleet import cluster

    address = f"{cluster.ray().util.get_node_ip_address()}:{arguments.port}"
    started = f"the fleet is up. On each other host:\n  ipexperf fleet join {address}\n"
    started += f"Then, on this host:\n  ipexperf fleet run {address} -- pytest suites/"
    words = ["--head", f"--port={arguments.port}", "--include-dashboard=false"]
    return _start(words, arguments, started, measures=not arguments.head_only)


def run_join(arguments: argparse.Namespace) -> int:
    """Start Ray here, as a part of the cluster at the address."""
    from ipexperf.tools.fleet import cluster

    cluster.reach(arguments.address)
    started = f"{arguments.name} is one of the hosts of {arguments.address}"
    return _start([f"--address={arguments.address}"], arguments, started, measures=True)


def _start(words: list[str], arguments: argparse.Namespace, started: str, *, measures: bool) -> int:
    """Start Ray and say so. With --block become Ray's command, which gets the signals and ends with Ray."""
    from ipexperf.tools.fleet import cluster, labels, membership

    ray = cluster.ray()
    if labels.value(arguments.name) != arguments.name:
        raise UsageError(f"--name {arguments.name!r}: expected letters, digits and -_.")
    folder = arguments.folder.resolve()
    if not folder.is_dir():
        raise UsageError(f"--folder {arguments.folder}: there is no such folder")
    if membership.members(folder):
        raise UsageError(f"{folder} is in a fleet already: ipexperf fleet down takes it out")
    progress.say("looking at this host")
    described = {"name": arguments.name, **labels.look(folder, os.environ)["labels"]}
    command = [
        *(sys.executable, "-m", "ray.scripts.scripts", "start", *words),
        "--num-cpus=0",
        "--num-gpus=0",
        f"--resources={json.dumps({cluster.RESOURCE: 1} if measures else {})}",
        f"--object-store-memory={STORE_BYTES}",
        "--labels=" + ",".join(f"{cluster.LABEL}{label}={content}" for label, content in described.items()),
    ]
    environment = {**os.environ, **CALM, FOLDER: str(folder), ENVIRONMENT: json.dumps(dict(os.environ))}
    if arguments.block:
        console.say(f"{started}\nas soon as Ray has started, and as long as this command runs")
        sys.stdout.flush()
        os.chdir(folder)
        os.execve(command[0], [*command, "--block"], environment)  # noqa: S606 - no shell is wanted
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=folder)
    if ended.returncode:
        progress.say(ended.stdout + ended.stderr)
        versions = f"Ray {ray.__version__}, Python {platform.python_version()}, RAY_AUTH_MODE"
        raise UsageError(f"Ray does not start, and says why above. All hosts need the same {versions} and token")
    console.say(started)
    return 0


def run_run(arguments: argparse.Namespace) -> int:
    from ipexperf.tools.fleet import cluster, hosts
    from ipexperf.tools.fleet.runs import Caller

    named = bool(arguments.words) and ADDRESS.fullmatch(arguments.words[0])
    address, command = (arguments.words[0], arguments.words[1:]) if named else ("auto", arguments.words)
    if not command:
        raise UsageError("fleet run: say behind -- what each host is to run, such as -- pytest suites/")
    for word in command:
        if word.partition("=")[0] in RECORDED:
            raise UsageError(f"{word}: each host records into a file of its own; --db before -- names the history here")
    with contextlib.closing(cluster.RayFleet(address)) as fleet:
        chosen = hosts.chosen(fleet.hosts(), arguments.where)
        return Caller(fleet, chosen, arguments.db).run(command, share=arguments.share)


def run_collect(arguments: argparse.Namespace) -> int:
    """Bring what was not brought yet."""
    from ipexperf.tools.fleet import cluster, hosts
    from ipexperf.tools.fleet.runs import Caller

    with contextlib.closing(cluster.RayFleet(arguments.address)) as fleet:
        return Caller(fleet, hosts.chosen(fleet.hosts(), arguments.where), arguments.db).collect()


def run_hosts(arguments: argparse.Namespace) -> int:
    from ipexperf.tools.fleet import cluster, hosts
    from ipexperf.tools.fleet.host_side import HostSide
    from ipexperf.tools.fleet.hosts import HostLostError

    with contextlib.closing(cluster.RayFleet(arguments.address)) as fleet:
        chosen = hosts.chosen(fleet.hosts(), arguments.where)
        kept = fleet.ask([host for host in chosen if not host.gone], HostSide.kept)
    for host in chosen:
        runs = HostLostError(host.gone) if host.gone else kept[host.name]
        state = f"gone: {runs}" if isinstance(runs, HostLostError) else "busy" if any(runs.values()) else "free"
        labels = [f"{name}={content}" for name, content in sorted(host.labels.items()) if name != "name"]
        console.say("  ".join([host.name, state, *labels]))
    return 0


def run_down(arguments: argparse.Namespace) -> int:
    """End Ray on this host, as far as `fleet up` or `fleet join` started it, and what it started."""
    from ipexperf.tools.fleet import membership

    folder = arguments.folder.resolve()
    console.say("this host has left the fleet" if membership.leave(folder) else f"{folder} is in no fleet")
    return 0
