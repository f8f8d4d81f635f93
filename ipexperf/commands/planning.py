"""What the subcommands share with pytest: the same axes and options, read the same way."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from ipexperf.plan import options as table
from ipexperf.plan.options import Options


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declares the suite's own options on a subcommand."""
    table.add_arguments(parser.add_argument_group("what is measured, and how").add_argument)


def add_short(parser: argparse.ArgumentParser, short: Mapping[str, str]) -> None:
    """Declares short ways to say some of these options: each flag with the name of its option."""
    known = {option.name: option for option in table.OPTIONS}
    for flag, name in short.items():
        option, dest = known[name], f"ipexperf_{name}"
        parser.add_argument(
            flag, type=option.read, default=None, dest=dest, metavar=option.metavar, help=f"short for {option.flag}"
        )


def resolve(arguments: argparse.Namespace, **over: Any) -> Options:
    """The options as pytest would see them; there is no ini file outside pytest."""
    found = table.resolve(lambda name: getattr(arguments, name), lambda _: None)
    if not over:
        return found
    from dataclasses import replace

    return replace(found, **over)
