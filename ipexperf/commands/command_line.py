"""Parse a command line, and run the subcommand that it names."""

from __future__ import annotations

import argparse
import io
import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from ipexperf import __version__, commands, scratch, variables
from ipexperf.bench import user_files
from ipexperf.bench.registry import CHOICES, nearest, nearest_option
from ipexperf.commands import console, gate
from ipexperf.conduct import interrupts
from ipexperf.errors import USAGE_ERROR, IpexperfError
from ipexperf.report.lines import Page
from ipexperf.sentences import few


class Parser(argparse.ArgumentParser):
    """Answers a mistake in one sentence: the usage of some subcommands takes forty lines. No option is abbreviated."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(allow_abbrev=False, **settings)

    def error(self, message: str) -> NoReturn:
        self.exit(USAGE_ERROR, f"{self.prog}: error: {message} (`{self.prog} --help` says what it takes)\n")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Refuse what the subcommand does not take here, where its own options are known."""
        known, unknown = super().parse_known_args(args, namespace)
        if unknown:
            hint = nearest_option(unknown, self._option_string_actions)
            self.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
        return known, unknown

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Name the choice that was probably meant, and some of them only where none is near."""
        if action.choices is not None and value not in action.choices:
            choices = list(map(str, action.choices))
            parsers = action.choices.items() if isinstance(action.choices, dict) else ()
            within = [f"{name} {value}" for name, parser in parsers if value in _subcommands(parser)]
            near = f": did you mean {within[0]}?" if within else nearest(str(value), choices)
            hint = near or f" (choose from {few(choices, CHOICES)})"
            raise argparse.ArgumentError(action, f"invalid choice: {str(value)!r}{hint}")


def _subcommands(parser: argparse.ArgumentParser) -> Iterable[str]:
    """The subcommands of a command, such as `accept` of `baseline`."""
    return next((action.choices or () for action in parser._actions if action.nargs == argparse.PARSER), ())  # noqa: SLF001


def answer(words: Sequence[str]) -> int:
    """Run a subcommand and return its exit status. An error is one sentence and status 2."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # what its encoding lacks, such as \u2713, is escaped
    if sys.stdout is not None and sys.stdout.isatty():
        Page.fit(shutil.get_terminal_size().columns)
    return gate.guarded(words, _answer) if gate.named(words) else _answer(words)


def _answer(words: Sequence[str]) -> int:
    parser = make_parser()
    if len(words) > 1 and words[0].startswith("--") and words[0] not in parser._option_string_actions:  # noqa: SLF001 - as argparse keeps them
        parser.error(f"{words[0]} stands before the command: write COMMAND {words[0]} ...")
    for word in words:
        if word.startswith("--") and word.endswith("=--"):
            # argparse of Python before 3.13 would take it for an empty list.
            parser.error(f"argument {word.removesuffix('=--')}: expected one argument, got '--'")
    arguments = parser.parse_args(words)
    if any(name.startswith(variables.PREFIX) for name in os.environ):
        from ipexperf.plan import reading

        if text := reading.unknown_variables():
            console.complain(text)
    try:
        with interrupts.sigterm_as_interrupt(), console.answering(), user_files.errors_as_usage():
            if "cache" in arguments:
                scratch.cache(arguments.cache)  # refused if it came with a commit
            status: int = arguments.run(arguments)
            sys.stdout.flush()
    except IpexperfError as error:
        console.complain(str(error))
        return USAGE_ERROR
    except BrokenPipeError:
        console.silence(sys.stdout)  # the reader, such as `head`, has closed the pipe
        return 0
    return status


class Overview(Parser):
    """The whole command, whose help has its subcommands by topic."""

    subparsers: console.Subparsers

    def format_help(self) -> str:
        lines = [f"usage: {self.prog} COMMAND ...", "", self.description or ""]
        topics: dict[str, list[str]] = {topic: [] for topic in console.TOPICS}
        for shown in self.subparsers._choices_actions:  # noqa: SLF001 - has no public name
            begin = f"    {shown.dest:<10}"
            topic = self.subparsers.choices[shown.dest].get_default("topic") or console.OTHERS
            topics[topic] += textwrap.wrap(
                f"{begin}{shown.help or ''}", min(Page.width, 100), subsequent_indent=" " * len(begin)
            )
        for topic, subcommands in topics.items():
            lines += ["", f"{topic}:", *subcommands] if subcommands else []
        return "\n".join([*lines, "", f"`{self.prog} COMMAND --help` says what a command takes.", ""])


def make_parser() -> Overview:
    parser = Overview(prog="ipexperf", description="Measure, compare and query performance runs.")
    parser.add_argument("--version", action="version", version=f"ipexperf {__version__}")
    plain: type[argparse.ArgumentParser] = Parser
    parser.subparsers = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=plain)
    for add in commands.every():
        add(parser.subparsers)
    return parser
