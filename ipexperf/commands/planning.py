"""Options that subcommands share with pytest."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from ipexperf.plan import options as table
from ipexperf.plan.options import Options


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the suite's options on a subcommand, but for those that pytest alone has."""
    table.add_arguments(parser.add_argument_group("what is measured, and how").add_argument, short=True, command=True)


def add_lease(parser: argparse.ArgumentParser) -> None:
    """Declare the option that says whether to wait for a device."""
    table.add_arguments(parser.add_argument, short=True, names=("lease",))


def add_short(parser: argparse.ArgumentParser, short: Mapping[str, str]) -> None:
    """Declare short flags for some of these options, given by name."""
    by_name = {option.name: option for option in table.OPTIONS}
    for flag, name in short.items():
        option = by_name[name]
        parser.add_argument(
            flag,
            type=option.read,
            default=None,
            dest=option.dest,
            metavar=option.metavar,
            help=f"short for {option.flag}",
        )


def resolve(arguments: argparse.Namespace, **over: Any) -> Options:
    """The options as pytest would see them, without an ini file."""
    options = table.resolve(lambda name: getattr(arguments, name, None), lambda _: None)
    if not over:
        return options
    from dataclasses import replace

    return replace(options, **over)
