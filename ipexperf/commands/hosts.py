"""`ipexperf hosts`: which of several equal machines is slower than the others."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from ipexperf.commands import console

DAYS = 30


def add_hosts(subparsers: console.Subparsers) -> None:
    parser = console.add_parser(subparsers, "hosts", "compare equal machines: which one is slower than the others")
    console.add_filters(parser)
    parser.add_argument("--since", metavar="WHEN", help=f"only runs from this UTC date on (default: {DAYS} days ago)")
    parser.set_defaults(run=run_hosts)


def run_hosts(arguments: argparse.Namespace) -> int:
    from datetime import datetime, timedelta, timezone

    from ipexperf.history import host_times
    from ipexperf.history.tables import kinds_table, kinds_text

    with console.open_history(arguments) as history:
        history.check_begun()
        ago = (datetime.now(timezone.utc) - timedelta(days=DAYS)).isoformat(timespec="milliseconds")
        since = history.span(arguments.since, None)["since"] if arguments.since else ago
        kinds = host_times.kinds(history, since=since, **console.filters(arguments))
    rows = [{"machine_key": kind.machine_key, **asdict(host)} for kind in kinds for host in kind.hosts]
    empty = "No two hosts of one kind measured the same cases. --since looks further back."
    return console.output(arguments, rows, rows, lambda: [kinds_table(kinds), kinds_text(kinds)] if kinds else [empty])


TOPIC = console.HOSTS
COMMANDS = (add_hosts,)
