"""`ipexperf help WORD`: what a printed word means, and what to do."""

from __future__ import annotations

import argparse

from ipexperf.bench.registry import nearest
from ipexperf.commands import console
from ipexperf.errors import UsageError
from ipexperf.plan.options import OPTIONS
from ipexperf.report import faq, lines
from ipexperf.result import METRICS


def add_help(subparsers: console.Subparsers) -> None:
    purpose = "explain a word that a run, a table or a failed test printed"
    parser = console.declare(subparsers, "help", purpose, run_help, console.HISTORY, "help inconclusive")
    text = "such as inconclusive, or `CUT SHORT`; `options` and `metrics` list all of these (default: list the words)"
    parser.add_argument("word", metavar="WORD", nargs="*", help=text)


def run_help(arguments: argparse.Namespace) -> int:
    word, texts, pages = faq.called(" ".join(arguments.word)), faq.explained(), faq.pages()
    if word == "options":
        told = [f"{option.flag} {option.metavar}: {option.help}".replace("%%", "%") for option in OPTIONS]
    elif word == "metrics":
        told = [f"{name}: {texts[faq.called(name)]}" for name in METRICS]
    elif word and (word in texts or word in pages):
        told = [*filter(None, [texts.get(word)]), *(f"The page is {pages[name]}" for name in pages if name == word)]
    elif word:
        raise UsageError(
            f"unknown word '{word}'{nearest(word, texts) or ': `ipexperf help` lists the first to look up'}"
        )
    else:
        told = [", ".join(faq.sections()), "and each metric, outcome, column and label that is printed"]
    for text in told:
        console.say("\n".join(lines.wrapped(text)))
    return 0


COMMANDS = (add_help,)
