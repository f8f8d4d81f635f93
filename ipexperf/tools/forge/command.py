"""`ipexperf comment`: print what a run says as a comment, or write it to the pull request of this job."""

from __future__ import annotations

import argparse
import os
from dataclasses import asdict
from pathlib import Path

from ipexperf.commands import console
from ipexperf.tools.forge import comment, forges


def add_comment(subparsers: console.Subparsers) -> None:
    purpose = "print a run as a comment on a pull request, or write it there: one comment, kept up to date"
    parser = console.declare(subparsers, "comment", purpose, run_comment, console.JUDGE, "comment last --post")
    parser.add_argument("selector", metavar="RUN", nargs="?", default="last", help=f"{console.RUN} (default: last)")
    parser.add_argument("--name", default="performance", help="its name, if a pull request has several comments")
    parser.add_argument("--link", metavar="URL", help="where the run's files are (default: the page of this job)")
    parser.add_argument("--post", action="store_true", help="write it to the pull request of this job")
    parser.add_argument("--json", action="store_true", help="print what it says as data, for a job that may comment")
    text = "the comment on a run of another job, which printed this file by --json"
    parser.add_argument("--data", type=Path, metavar="FILE", help=text)
    console.add_history(parser)


def run_comment(arguments: argparse.Namespace) -> int:
    contents = comment.read(arguments.data) if arguments.data else _of_run(arguments)
    if arguments.json:
        console.say_json(asdict(contents))
        return 0
    link = forges.link_of_job(os.environ) if arguments.link is None else arguments.link
    body = comment.text(contents, arguments.name, link)
    if not arguments.post:
        console.say(body)
        return 0
    forge = forges.of_job(os.environ)
    number = forge.find(comment.marker(arguments.name))
    if number is None and not (contents.worse or contents.faster or contents.fails):
        console.say(f"no comment is needed: {contents.title}")
        return 0
    forge.write(body, number)
    console.say("the comment was written" if number is None else "the comment was written anew")
    return 0


def _of_run(arguments: argparse.Namespace) -> comment.Contents:
    with console.open_history(arguments) as history:
        return comment.of(history.show(arguments.selector))
