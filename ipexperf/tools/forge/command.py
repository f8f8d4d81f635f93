"""`ipexperf comment`: print what a run says as a comment, or write it to the pull request of this job."""

from __future__ import annotations

import argparse
import os
import re
from pathlib import Path

from ipexperf.commands import console
from ipexperf.errors import UsageError
from ipexperf.tools.forge import comment, forges
from ipexperf.tools.forge.comment import Comment


def add_comment(subparsers: console.Subparsers) -> None:
    purpose = "print a run as a comment on a pull request, or write it there: one comment, kept up to date"
    parser = console.declare(subparsers, "comment", purpose)
    parser.add_argument("selector", metavar="RUN", nargs="?", default="last", help=f"{console.RUN} (default: last)")
    parser.add_argument("--name", default="performance", help="its name, if a pull request has several comments")
    parser.add_argument("--link", metavar="URL", help="where the run's files are (default: the page of this job)")
    parser.add_argument("--post", action="store_true", help="write it to the pull request of this job")
    text = "write this text instead, as it was printed by a job that may not comment"
    parser.add_argument("--body", type=Path, metavar="FILE", help=text)
    console.add_history(parser)
    parser.set_defaults(run=run_comment)


def run_comment(arguments: argparse.Namespace) -> int:
    made = _of_file(arguments) if arguments.body else _of_run(arguments)
    if not arguments.post:
        console.say(made.body)
        return 0
    forge = forges.of_job(os.environ)
    number = forge.find(comment.marker(arguments.name))
    if number is None and not made.changed:
        console.say("nothing became slower or faster: no comment")
        return 0
    forge.write(made.body, number)
    console.say("the comment was written" if number is None else "the comment was written anew")
    return 0


def _of_run(arguments: argparse.Namespace) -> Comment:
    link = forges.link_of_job(os.environ) if arguments.link is None else arguments.link
    with console.open_history(arguments) as history:
        return comment.of(history.show(arguments.selector), arguments.name, link)


def _of_file(arguments: argparse.Namespace) -> Comment:
    """The comment of a job that had no token. Whoever wrote it can neither call people nor be another comment."""
    try:
        text = arguments.body.read_bytes()[: comment.LIMIT].decode(errors="replace")
    except OSError as error:
        raise UsageError(f"{arguments.body}: {error.strerror}") from None
    mark = comment.marker(arguments.name)
    body = re.sub(r"<!--.*?-->", "", text.removeprefix(mark), flags=re.DOTALL).replace("@", "@\N{ZERO WIDTH SPACE}")
    quiet = body.lstrip().startswith("### ipexperf: nothing")
    return comment.Comment(mark + body, changed=not quiet)


COMMANDS = (add_comment,)
TOPIC = console.JUDGE
