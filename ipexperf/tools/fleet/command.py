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
from typing import TYPE_CHECKING

from ipexperf.commands import console, progress
from ipexperf.errors import UsageError
from ipexperf.tools.fleet.membership import ADDRESS, ENVIRONMENT, FOLDER

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ipexperf.tools.fleet.runs import Fleet

PORT = 6379
STORE_BYTES = 128 * 2**20
"""Memory for what Ray passes between hosts: lines of text, and the histories of runs in parts."""
RECORDED = ("--perf-db", "--db")
FLEETS = "default: the fleet of this host; local:FOLDER,FOLDER for folders of this machine, without Ray"
ADDRESSES = re.compile(r"auto|local:.*|(ray://)?[^/\s]+:\d+")
"""What is no command."""
CALM = {
    "RAY_memory_monitor_refresh_ms": "0",  # kills what uses much memory
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_enable_metrics_collection": "0",
    "RAY_kill_child_processes_on_worker_exit": "false",  # a command ends by itself when we are gone
    "RAY_worker_niceness": "0",  # 15 otherwise: everybody else would come first
}
"""Variables that keep Ray from disturbing or ending a measurement."""


def add_fleet(subparsers: console.Subparsers) -> None:
    purpose = "run one command on many hosts (on Ray), and merge what they record"
    actions = console.declare(subparsers, "fleet", purpose).add_subparsers(metavar="ACTION", required=True)
    up = console.declare(actions, "up", "make this host the head of a new fleet, and one of its hosts")
    up.add_argument("--port", type=console.positive, default=PORT, help=f"where other hosts join (default: {PORT})")
    up.add_argument("--head-only", action="store_true", help="measure nothing on this host")
    _add_host(up)
    up.set_defaults(run=run_up)
    join = console.declare(actions, "join", "let this host measure for the fleet at an address")
    join.add_argument("address", metavar="HOST:PORT", help="what `ipexperf fleet up` printed")
    _add_host(join)
    join.set_defaults(run=run_join)
    run = console.declare(actions, "run", "run a command on each host, and bring what it records into the history here")
    _add_where(run)
    run.add_argument("--share", action="store_true", help="deal the cases out over the hosts, which must be equal")
    text = f"what each host runs in its folder, such as pytest suites/, and before it the fleet ({FLEETS})"
    run.add_argument("words", nargs="*", metavar="[ADDRESS] -- COMMAND", help=text)
    console.add_history(run)
    run.set_defaults(run=run_run)
    collect = console.declare(actions, "collect", "bring what hosts recorded for a run that was cut off")
    _add_fleet(collect)
    console.add_history(collect)
    collect.set_defaults(run=run_collect)
    hosts = console.declare(actions, "hosts", "list the hosts, and whether each is free, busy or gone")
    _add_fleet(hosts)
    hosts.add_argument("--json", action="store_true", help="print JSON instead of text")
    hosts.set_defaults(run=run_hosts)
    down = console.declare(actions, "down", "leave the fleet: end Ray on this host, and what runs in it")
    text = "only the fleet at the address that `fleet up` printed (default: every fleet that this host is in)"
    down.add_argument("address", nargs="?", default="", metavar="HOST:PORT", help=text)
    down.set_defaults(run=run_down)


def _add_fleet(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("address", nargs="?", default="auto", metavar="ADDRESS", help=FLEETS)
    _add_where(parser)


def _add_where(parser: argparse.ArgumentParser) -> None:
    text = "only the hosts that pass, such as 'device=xpu and driver>=25'"
    parser.add_argument("--where", metavar="TEST", help=text)


def _add_host(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--name", default=platform.node(), help="the host's name in the fleet (default: its own)")
    text = "a label to choose the host by, such as room=b2 (repeatable)"
    parser.add_argument("--label", action="append", default=[], metavar="NAME=VALUE", help=text)
    text = "the checkout in which the host runs what it is told (default: this folder)"
    parser.add_argument("--folder", type=Path, default=Path(), metavar="DIR", help=text)
    text = "do not return: the host is in the fleet as long as this command runs (Slurm, Kubernetes, systemd)"
    parser.add_argument("--block", action="store_true", help=text)


def run_up(arguments: argparse.Namespace) -> int:
    """Start Ray's head here."""
    from ipexperf.tools.fleet import cluster

    words = ["--head", f"--port={arguments.port}", "--include-dashboard=false"]
    address = f"{cluster.own_address()}:{arguments.port}"
    started = f"the fleet is up. On each other host:\n  ipexperf fleet join {address}\n"
    started += f"Then, on this host:\n  ipexperf fleet run {address} -- pytest suites/"
    _start(words, arguments, address, started, measures=not arguments.head_only)
    return 0


def run_join(arguments: argparse.Namespace) -> int:
    """Start Ray here, as a part of the cluster at the address."""
    from ipexperf.tools.fleet import cluster

    cluster.agree(arguments.address)
    started = f"{arguments.name} is one of the hosts of {arguments.address}"
    _start([f"--address={arguments.address}"], arguments, arguments.address, started, measures=True)
    return 0


def _start(words: Sequence[str], arguments: argparse.Namespace, address: str, started: str, *, measures: bool) -> None:
    """Start Ray and say so. With --block become Ray's command, which gets the signals and ends with Ray."""
    from ipexperf.tools.fleet import cluster, labels, membership

    cluster.ray()
    user_labels = dict(labels.parse(text) for text in arguments.label)
    name = labels.value(arguments.name)
    if name != arguments.name:
        raise UsageError(f"--name {arguments.name!r}: expected letters, digits and -_.")
    folder = arguments.folder.resolve()
    if not folder.is_dir():
        raise UsageError(f"--folder {arguments.folder}: there is no such folder")
    if membership.members():
        raise UsageError("this host is in a fleet already: ipexperf fleet down takes it out")
    progress.say("looking at this host")
    described = {**labels.describe(name, progress.say), **user_labels}
    resources = f'{{"{cluster.RESOURCE}": 1}}' if measures else "{}"
    command = [
        *(cluster.executable(), "start", *words),
        "--num-cpus=0",
        "--num-gpus=0",
        f"--resources={resources}",
        f"--object-store-memory={STORE_BYTES}",
        "--labels=" + ",".join(f"{cluster.LABEL}{label}={content}" for label, content in described.items()),
        "--disable-usage-stats",
    ]
    ours = {
        FOLDER: str(folder),
        ADDRESS: address,
        ENVIRONMENT: json.dumps(dict(os.environ)),
    }
    environment = {**os.environ, **CALM, **ours}
    if arguments.block:
        console.say(f"{started}\nas soon as Ray has started, and as long as this command runs")
        sys.stdout.flush()
        os.chdir(folder)
        os.execve(command[0], [*command, "--block"], environment)  # noqa: S606 - no shell is wanted
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=folder)
    if ended.returncode:
        lines = [line.strip() for line in (ended.stderr + ended.stdout).splitlines() if line.strip()]
        versions = f"Ray {cluster.ray().__version__}, Python {platform.python_version()}"
        raise UsageError(
            f"Ray does not start: {_reason(lines)} (all hosts of a fleet need the same versions: {versions})"
        )
    console.say(started)


def _reason(lines: Sequence[str]) -> str:
    """The line that says what is wrong, among what Ray prints."""
    reasons = [line for line in lines if any(word in line for word in ("Error", "error", "mismatch", "already"))]
    return (reasons or list(lines) or ["it says nothing"])[-1][:300]


def run_run(arguments: argparse.Namespace) -> int:
    """Run a command on each host."""
    from ipexperf.tools.fleet import hosts
    from ipexperf.tools.fleet.runs import Caller

    named = ADDRESSES.fullmatch(arguments.words[0]) if arguments.words else None
    address, command = (named[0], arguments.words[1:]) if named else ("auto", arguments.words)
    if not command:
        raise UsageError("fleet run: say behind -- what each host is to run, such as -- pytest suites/")
    for word in command:
        if word.partition("=")[0] in RECORDED:
            raise UsageError(f"{word}: each host records into a file of its own; --db before -- names the history here")
    with _connected(address) as fleet:
        chosen = hosts.chosen(fleet.hosts(), arguments.where)
        return Caller(fleet, chosen, arguments.db).run(command, share=arguments.share)


def run_collect(arguments: argparse.Namespace) -> int:
    """Bring what was not brought yet."""
    from ipexperf.tools.fleet import hosts
    from ipexperf.tools.fleet.runs import Caller

    with _connected(arguments.address) as fleet:
        return Caller(fleet, hosts.chosen(fleet.hosts(), arguments.where), arguments.db).collect()


def run_hosts(arguments: argparse.Namespace) -> int:
    """List the hosts."""
    from ipexperf.tools.fleet import hosts
    from ipexperf.tools.fleet.host_side import HostSide
    from ipexperf.tools.fleet.hosts import HostLostError

    with _connected(arguments.address) as fleet:
        chosen = hosts.chosen(fleet.hosts(), arguments.where)
        kept = fleet.ask([host for host in chosen if not host.gone], HostSide.kept)
    rows = []
    for host in chosen:
        runs = HostLostError(host.gone) if host.gone else kept[host.name]
        state = f"gone: {runs}" if isinstance(runs, HostLostError) else "busy" if any(runs.values()) else "free"
        rows.append({"host": host.name, "state": state, **host.labels})
        if not arguments.json:
            labels = [f"{name}={content}" for name, content in sorted(host.labels.items())]
            console.say("  ".join([host.name, state, *labels]))
    if arguments.json:
        console.say_json(rows)
    return 0


@contextlib.contextmanager
def _connected(address: str) -> Iterator[Fleet]:
    from ipexperf.tools.fleet import cluster, local

    fleet = local.LocalFleet(address) if address.startswith(local.PREFIX) else cluster.RayFleet(address)
    try:
        yield fleet
    finally:
        fleet.close()


def run_down(arguments: argparse.Namespace) -> int:
    """End Ray on this host, as far as `fleet up` or `fleet join` started it, and what it started."""
    from ipexperf.tools.fleet import membership

    address = arguments.address
    others = sorted(
        {fleet_of_process or "one without an address" for fleet_of_process in membership.members().values()}
    )
    if address and others and address not in others:
        raise UsageError(f"fleet down {address}: this host is in no such fleet, but in {', '.join(others)}")
    ended = membership.leave(address)
    console.say("this host has left the fleet" if ended else "this host is in no fleet")
    return 0


TOPIC = console.HOSTS
