"""The line from a worker to its controller: one JSON document a line, either way."""

from __future__ import annotations

import json
import traceback
from collections.abc import Mapping
from typing import IO, Any

from ipexperf.bench import lazy, outcome, user_files
from ipexperf.errors import UsageError, WorkerError


class Line:
    """The line to the controller: its requests, and where replies go."""

    def __init__(self, requests: IO[str], replies: IO[str]) -> None:
        self._requests = requests
        self._replies = replies

    def write(self, document: Mapping[str, Any]) -> None:
        self._replies.write(json.dumps(document, allow_nan=False) + "\n")
        self._replies.flush()

    def say(self, text: str) -> None:
        self.write({"say": text})

    def answer(self, worker: Any, *ends: str) -> str:
        """Let the worker, which has a method for each request, answer until one of `ends` comes.

        That one is returned unanswered: who asked answers it. Returns an empty text at the end of the line.
        """
        for line in self._requests:
            request = json.loads(line)
            if request["do"] in ends:
                return str(request["do"])
            try:
                reply = getattr(worker, request["do"])(request)
                lazy.remove_leftovers()
                self.write({"ok": True, **reply})
            except (Exception, SystemExit) as error:  # noqa: BLE001 - any failure becomes an outcome, with its reason
                reason = str(error)
                if not isinstance(error, (UsageError, WorkerError)):
                    traceback.print_exc()
                    reason = user_files.sentence(error)
                    if outcome.outcome_of(error) == "error":
                        reason = worker.flaw() or reason
                self.write({"ok": False, "outcome": outcome.outcome_of(error), "reason": reason})
        return ""
