"""What the subcommands share with pytest: the same axes and options, read the same way."""

from __future__ import annotations

import argparse
from typing import Any

from ipexperf.plan import options as table
from ipexperf.plan.options import Options


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declares the suite's own options on a subcommand."""
    table.add_arguments(parser.add_argument_group("what is measured, and how").add_argument)


def resolve(arguments: argparse.Namespace, **over: Any) -> Options:
    """The options as pytest would see them; there is no ini file outside pytest."""
    found = table.resolve(lambda name: getattr(arguments, name), lambda _: None)
    if not over:
        return found
    from dataclasses import replace

    return replace(found, **over)
