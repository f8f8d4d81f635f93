"""Options that subcommands share with pytest."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ipexperf.commands import console
from ipexperf.plan import reading
from ipexperf.plan.options import MEASURE, OPTIONS, PLAN, Options

if TYPE_CHECKING:
    from ipexperf.commands.progress import Progress
    from ipexperf.compare.against import JudgedCases, PairRun
    from ipexperf.recorder import Recorder


def add_options(
    parser: argparse.ArgumentParser, scopes: Collection[str] = (PLAN, MEASURE), *, without: Collection[str] = ()
) -> None:
    """Declare the suite's options of these scopes, but for some by name. Help has those with a short spelling."""
    chosen = [option for option in OPTIONS if option.scope in scopes and option.name not in without]
    group = parser.add_argument_group("which cases (all options: `ipexperf help options`)")
    reading.add_arguments(group.add_argument, [option for option in chosen if option.short])

    def hide(flag: str, **settings: Any) -> None:
        parser.add_argument(flag, **{**settings, "help": argparse.SUPPRESS})

    reading.add_arguments(hide, [option for option in chosen if not option.short])


def add_some(parser: argparse.ArgumentParser, *names: str) -> None:
    """Declare these options of the suite on a subcommand."""
    reading.add_arguments(parser.add_argument, [option for option in OPTIONS if option.name in names])


def add_short(parser: argparse.ArgumentParser, short: Mapping[str, str]) -> None:
    """Declare short flags for some of these options, given by name."""
    by_name = {option.name: option for option in OPTIONS}
    for flag, name in short.items():
        option = by_name[name]
        parser.add_argument(
            flag, type=option.read, default=None, dest=option.dest, metavar=option.metavar, help=option.help
        )


def resolve(arguments: argparse.Namespace) -> Options:
    """The options as pytest would see them, without an ini file."""
    from ipexperf.bench import loading

    options = reading.resolve(lambda name: getattr(arguments, name, None))
    options = dataclasses.replace(options, load=(*loading.installed(console.complain), *options.load))
    if options.python is None:
        return options
    from ipexperf import invocation  # imports all that a run needs

    return invocation.in_its_environment(options, Path.cwd(), console.complain)


def recorder(command: str, options: Options) -> Recorder:
    """The recorder of a subcommand, whose history is open."""
    from ipexperf.recorder import Recorder

    words = ("ipexperf", command, *sys.argv[2:])
    opened = Recorder(options, Path.cwd(), words, command)
    opened.open()
    return opened


def play(
    running: PairRun, recorder: Recorder, progress: Progress, tell: Callable[[PairRun, JudgedCases], None]
) -> None:
    """Make all rounds, record what there is after each, and tell what was found, however it ends."""
    try:
        with progress:
            for _ in running.play():
                recorder.so_far(lambda: running.judged().values(), lambda: running.rounds)
            judged = running.judged()
    except KeyboardInterrupt:
        tell(running, running.judged("it was interrupted before the first pair"))
        raise
    tell(running, judged)
