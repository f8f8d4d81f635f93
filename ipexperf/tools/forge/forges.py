"""The forges that a comment is written to: GitHub and GitLab, as their jobs describe them by variables."""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

from ipexperf.errors import UsageError

SECONDS = 30.0
"""Time limit of a request."""
PAGE = 100


@dataclass(frozen=True, slots=True)
class Api:
    """Requests to a forge, with the token in a header."""

    base: str
    header: tuple[str, str]

    def ask(self, method: str, path: str, document: Mapping[str, Any] | None = None) -> Any:
        """Send a request. Raises UsageError in a sentence."""
        data = None if document is None else json.dumps(document).encode()
        headers = {"Content-Type": "application/json", "User-Agent": "ipexperf", self.header[0]: self.header[1]}
        request = urllib.request.Request(f"{self.base}/{path}", data, headers, method=method)  # noqa: S310 - the forge's
        try:
            with urllib.request.urlopen(request, timeout=SECONDS) as reply:  # noqa: S310 - as above
                return json.loads(reply.read() or b"null")
        except urllib.error.HTTPError as error:
            with error:
                raise UsageError(_refusal(method, path, error)) from None
        except (urllib.error.URLError, TimeoutError, json.JSONDecodeError) as error:
            reason = getattr(error, "reason", error)
            raise UsageError(f"{urllib.parse.urlsplit(self.base).netloc} does not answer: {reason}") from None

    def pages(self, path: str) -> Iterator[Any]:
        """Yield the entries of all pages of a list."""
        number = 1
        while page := self.ask("GET", f"{path}?per_page={PAGE}&page={number}"):
            yield from page
            if len(page) < PAGE:
                return
            number += 1


def _refusal(method: str, path: str, error: urllib.error.HTTPError) -> str:
    why: dict[int, str] = {
        HTTPStatus.UNAUTHORIZED: "its token is not valid",
        HTTPStatus.FORBIDDEN: "its token may not comment here: a job of a fork has none that may",
        HTTPStatus.NOT_FOUND: "there is no such pull request, or its token may not see it",
    }
    return f"the forge refused {method} {path.partition('?')[0]} ({error.code}): {why.get(error.code, error.reason)}"


@dataclass(frozen=True, slots=True)
class Forge:
    """The comments of a pull request."""

    api: Api
    comments: str
    """The path of all."""
    comment: str
    """The path of one, without its number."""
    edit: str
    """The method that writes one anew."""

    def find(self, marker: str) -> int | None:
        """The number of the comment that begins with this marker."""
        return next(
            (int(comment["id"]) for comment in self.api.pages(self.comments) if comment["body"].startswith(marker)),
            None,
        )

    def write(self, body: str, number: int | None) -> None:
        """Write a comment, or this one anew."""
        if number is None:
            self.api.ask("POST", self.comments, {"body": body})
        else:
            self.api.ask(self.edit, f"{self.comment}/{number}", {"body": body})


def github(environment: Mapping[str, str], event: Mapping[str, Any]) -> Forge:
    """A pull request on GitHub, or on a server of one's own."""
    base = f"{environment['GITHUB_API_URL']}/repos/{environment['GITHUB_REPOSITORY']}"
    api = Api(base, ("Authorization", f"Bearer {_token(environment, 'GITHUB_TOKEN')}"))
    return Forge(api, f"issues/{_pull(api, event)}/comments", "issues/comments", "PATCH")


def _pull(api: Api, event: Mapping[str, Any]) -> int:
    """The number of the pull request. That of a run is found by its commit: its own word may be a stranger's."""
    if "pull_request" in event:
        return int(event["pull_request"]["number"])
    head = event.get("workflow_run", {}).get("head_sha", "")
    pulls = api.ask("GET", f"commits/{head}/pulls") if head else []
    numbers = [int(pull["number"]) for pull in pulls if pull.get("head", {}).get("sha") == head]
    if len(numbers) != 1:
        raise UsageError("this job is of no pull request, or of several: comment --post needs one")
    return numbers[0]


def gitlab(environment: Mapping[str, str]) -> Forge:
    """A merge request on GitLab."""
    if "CI_MERGE_REQUEST_IID" not in environment:
        raise UsageError("this job is of no merge request: comment --post needs one")
    base = f"{environment['CI_API_V4_URL']}/projects/{environment['CI_PROJECT_ID']}"
    notes = f"merge_requests/{environment['CI_MERGE_REQUEST_IID']}/notes"
    return Forge(Api(base, ("PRIVATE-TOKEN", _token(environment, "GITLAB_TOKEN"))), notes, notes, "PUT")


def _token(environment: Mapping[str, str], name: str) -> str:
    if not environment.get(name):
        raise UsageError(f"{name} is not set: comment --post needs a token that may comment")
    return environment[name]


def of_job(environment: Mapping[str, str]) -> Forge:
    """The forge whose job this is. Raises UsageError if this is none."""
    if environment.get("GITHUB_ACTIONS") == "true":
        event = json.loads(Path(environment["GITHUB_EVENT_PATH"]).read_text(encoding="utf-8"))
        return github(environment, event)
    if "GITLAB_CI" in environment:
        return gitlab(environment)
    raise UsageError("comment --post is for jobs of GitHub and GitLab: without --post it prints the comment")


def link_of_job(environment: Mapping[str, str]) -> str:
    """The page of this job, where its files are, or an empty text outside of one."""
    if environment.get("GITHUB_ACTIONS") == "true":
        words = (environment[name] for name in ("GITHUB_SERVER_URL", "GITHUB_REPOSITORY", "GITHUB_RUN_ID"))
        return "{}/{}/actions/runs/{}".format(*words)
    return environment.get("CI_JOB_URL", "")
