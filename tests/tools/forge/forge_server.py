"""A forge that keeps the comments of one pull request in memory, or refuses; and files of strangers."""

import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

HEAD = "c0ffee"


class Forge(ThreadingHTTPServer):
    """As GitHub answers, and GitLab at its own paths."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.comments: dict[int, str] = {}
        self.log: list[str] = []
        self.refusals: list[int] = []
        """The statuses that the next requests are answered with instead."""

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def github(self) -> dict[str, str]:
        """The variables of a job of GitHub, without its event."""
        return {
            "GITHUB_ACTIONS": "true",
            "GITHUB_API_URL": self.address,
            "GITHUB_SERVER_URL": "https://forge.test",
            "GITHUB_REPOSITORY": "me/mine",
            "GITHUB_RUN_ID": "77",
            "GITHUB_TOKEN": "secret",
        }


class Handler(BaseHTTPRequestHandler):
    server: Forge

    def _answer(self) -> None:
        url = urlsplit(self.path)
        length = int(self.headers.get("Content-Length") or 0)
        document = json.loads(self.rfile.read(length)) if length else {}
        self.server.log.append(f"{self.command} {url.path}")
        if self.server.refusals:
            self._send(self.server.refusals.pop(0), {"message": "no"})
        elif url.path.endswith("/pulls"):
            self._send(200, [{"number": 5, "head": {"sha": HEAD}}, {"number": 6, "head": {"sha": "other"}}])
        elif self.command == "GET":
            query = {name: int(values[0]) for name, values in parse_qs(url.query).items()}
            entries = [{"id": number, "body": body} for number, body in self.server.comments.items()]
            self._send(200, entries[(query["page"] - 1) * query["per_page"] :][: query["per_page"]])
        else:
            last = url.path.rpartition("/")[2]
            number = int(last) if last.isdecimal() else len(self.server.comments) + 1
            self.server.comments[number] = document["body"]
            self._send(201, {"id": number})

    do_GET = do_POST = do_PATCH = do_PUT = _answer  # noqa: N815 - the names that http.server asks for

    def _send(self, status: int, document: Any) -> None:
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(document).encode())

    def log_message(self, *_: object) -> None:
        """Nothing on standard error."""


@contextmanager
def serving() -> Iterator[Forge]:
    with Forge() as forge:
        thread = threading.Thread(target=forge.serve_forever, daemon=True)
        thread.start()
        try:
            yield forge
        finally:
            forge.shutdown()
            thread.join()


def planted(path: Path, kind: str) -> None:
    """What a stranger may put in the place of a file with data."""
    if kind == "link":
        path.with_name("secret").write_text("{}")
        path.symlink_to("secret")
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "huge":
        with path.open("wb") as stream:
            stream.truncate(2**30)
    else:
        path.write_text({"deep": "[" * 100_000, "number": "1" * 5_000, "text": "@everybody"}[kind])
