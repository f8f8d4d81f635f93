"""`ipexperf help WORD`: what a printed word means, and what to do."""

from __future__ import annotations

import argparse

from ipexperf.commands import console
from ipexperf.errors import UsageError
from ipexperf.report import faq, lines


def add_help(subparsers: console.Subparsers) -> None:
    purpose = "explain a word that a run, a table or a failed test printed"
    parser = console.declare(subparsers, "help", purpose, run_help, console.HISTORY)
    parser.add_argument("word", metavar="WORD", nargs="?", help="such as inconclusive (default: list the words)")


def run_help(arguments: argparse.Namespace) -> int:
    sections = faq.sections()
    if arguments.word is None:
        console.say("\n".join(lines.wrapped(", ".join(sections))))
        return 0
    word = arguments.word.lower()
    if word not in sections:
        from ipexperf.bench.registry import unknown

        raise UsageError(unknown("word", word, list(sections)))
    console.say("\n".join(lines.wrapped(sections[word])))
    return 0


COMMANDS = (add_help,)
