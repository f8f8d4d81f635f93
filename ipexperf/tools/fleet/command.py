"""`ipexperf fleet`: make a fleet of hosts, join it, look at it, leave it."""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from ipexperf.commands import console, progress
from ipexperf.errors import UsageError
from ipexperf.variables import FLEET_ADDRESS, FLEET_ENVIRONMENT, FLEET_FOLDER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ipexperf.tools.fleet import survey

PORT = 6379
STORE_BYTES = 128 * 2**20
"""Memory for what Ray passes between hosts: lines of text and, once, our code."""
WATCH_SECONDS = 10
CLEAR = "\x1b[H\x1b[2J"
CALM = {
    "RAY_memory_monitor_refresh_ms": "0",  # kills what uses much memory
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_enable_metrics_collection": "0",
    "RAY_kill_child_processes_on_worker_exit": "false",  # what measures finishes its group when we are gone
    "RAY_worker_niceness": "0",  # 15 otherwise: everybody else would come first
}
"""Variables that keep Ray from disturbing or ending a measurement."""


def add_fleet(subparsers: console.Subparsers) -> None:
    purpose = "make a fleet of hosts that measure for one run (on Ray)"
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
    purpose = "show what each host of a fleet is doing, how busy it was, and what it keeps of runs that were cut off"
    hosts = console.declare(actions, "hosts", purpose)
    text = "default: the fleet of this host; local:NAME,NAME for one of --perf-fleet local:NAME,NAME"
    hosts.add_argument("address", nargs="?", default="auto", metavar="ADDRESS", help=text)
    hosts.add_argument("--hosts", metavar="TEST", help="only these, as in --perf-hosts")
    hosts.add_argument("--json", action="store_true", help="print JSON instead of text")
    text = "also write it as a page for a browser, with what each host measured in the last day"
    hosts.add_argument("--html", type=Path, metavar="FILE", help=text)
    text = f"show it again every so many seconds, until Ctrl-C (default: {WATCH_SECONDS})"
    hosts.add_argument("--watch", type=console.positive, nargs="?", const=WATCH_SECONDS, metavar="SECONDS", help=text)
    hosts.set_defaults(run=run_hosts)
    down = console.declare(actions, "down", "leave the fleet: end Ray on this host, and what runs in it")
    text = "only the fleet at the address that `fleet up` printed (default: every fleet that this host is in)"
    down.add_argument("address", nargs="?", default="", metavar="HOST:PORT", help=text)
    down.set_defaults(run=run_down)


def _add_host(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--name", default=platform.node(), help="the host's name in the fleet (default: its own)")
    text = "a label to choose the host by, such as room=b2 (repeatable)"
    parser.add_argument("--label", action="append", default=[], metavar="NAME=VALUE", help=text)
    text = "where the host keeps trained weights and the like (default: this folder)"
    parser.add_argument("--folder", type=Path, default=Path(), metavar="DIR", help=text)
    text = "do not return: the host is in the fleet as long as this command runs (Slurm, Kubernetes, systemd)"
    parser.add_argument("--block", action="store_true", help=text)


def run_up(arguments: argparse.Namespace) -> int:
    """Start Ray's head here."""
    from ipexperf.tools.fleet import cluster

    words = ["--head", f"--port={arguments.port}", "--include-dashboard=false"]
    address = f"{cluster.own_address()}:{arguments.port}"
    started = f"the fleet is up. On each other host:\n  ipexperf fleet join {address}\n"
    started += f"Then, on this host:\n  pytest suites/ --perf-fleet {address}"
    _start(words, arguments, address, started, measures=not arguments.head_only)
    return 0


def run_join(arguments: argparse.Namespace) -> int:
    """Start Ray here, as a part of the cluster at the address."""
    from ipexperf.tools.fleet import cluster

    cluster.agree(arguments.address, "fleet join")
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
        FLEET_FOLDER: str(folder),
        FLEET_ADDRESS: address,
        FLEET_ENVIRONMENT: json.dumps(dict(os.environ)),
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


def run_hosts(arguments: argparse.Namespace) -> int:
    """Show the hosts, once or again and again."""
    from ipexperf.judge.baseline import write_text
    from ipexperf.tools.fleet import survey

    fleet = _connected(arguments.address)
    try:
        while True:
            views = survey.make(fleet, arguments.hosts)
            if arguments.json:
                text = json.dumps([survey.row(view) for view in views], indent=2)
            else:
                text = "\n".join(line for view in views for line in survey.lines(view))
            again = arguments.watch is not None and sys.stdout.isatty()
            console.say(CLEAR * again + text)
            if arguments.html is not None:
                write_text(arguments.html, survey.page(views, arguments.watch))
            if arguments.watch is None:
                return 0
            sys.stdout.flush()
            time.sleep(arguments.watch)
    except KeyboardInterrupt:
        if arguments.watch is None:
            raise
        return 0  # how a watch ends
    finally:
        fleet.close()


def _connected(address: str) -> survey.Fleet:
    from ipexperf.tools.fleet import cluster, local

    if local.named(address):
        return local.LocalFleet(address, Path(".ipexperf"))
    return cluster.RayCluster(address, "fleet hosts")


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
