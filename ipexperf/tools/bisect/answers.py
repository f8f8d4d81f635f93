"""The log of a search: the answers of its candidates, in a file that the next try reads."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from ipexperf import scratch
from ipexperf.case import Case
from ipexperf.errors import UsageError
from ipexperf.judge.bisection import Answer
from ipexperf.ratio import Ratio

FOLDER = "bisect"


@dataclass(frozen=True, slots=True)
class Measured:
    """The answer of one candidate, with its reason and its numbers."""

    answer: Answer
    reason: str
    ratio: Ratio | None = None
    ran: tuple[str, ...] = ()
    """How its kernels differ from those of the good end."""
    machine: str = ""
    """The machine_key of the machine that ran it. Empty if it did not run."""

    @property
    def lo(self) -> float | None:
        """The lower end of the interval of its ratio."""
        return self.ratio.lo if self.ratio else None


class AnswerLog:
    """The answers of one search, by the candidate's content. Each is on disk before the next question."""

    def __init__(self, path: Path) -> None:
        """Read the answers of an earlier try."""
        self.path = path
        self._answers: dict[str, Measured] = {}
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"{path} cannot be read: {error}") from error
        for line in text.splitlines():
            # A killed process was writing this line, or a disk damaged it.
            with contextlib.suppress(ValueError, KeyError, TypeError, RecursionError):
                document = json.loads(line)
                measured = document["measured"]
                ratio = Ratio(**measured["ratio"]) if measured["ratio"] else None
                parsed = {"answer": Answer(measured["answer"]), "ran": tuple(measured["ran"]), "ratio": ratio}
                self._answers[document["key"]] = Measured(**{**measured, **parsed})

    def get(self, key: str) -> Measured | None:
        return self._answers.get(key)

    def put(self, key: str, measured: Measured) -> None:
        """Write an answer, unless the next try may answer otherwise: on a quieter machine, or with the index back."""
        if measured.answer not in (Answer.GOOD, Answer.BAD):
            return
        self._answers[key] = measured
        line = json.dumps({"key": key, "measured": {**dataclasses.asdict(measured), "answer": measured.answer.value}})
        try:
            scratch.made(self.path.parent)
            with self.path.open("a", encoding="utf-8") as stream:
                stream.write(f"\n{line}\n")  # a killed process may have left half a line
        except OSError as error:
            raise UsageError(f"{self.path} cannot be written: {error}") from error


def log_path(cache: Path, case: Case, good: str, bad: str) -> Path:
    """Return the path of a search's log. The case and both ends name it."""
    name = hashlib.sha256(f"{case.uid} {good} {bad}".encode()).hexdigest()[:12]
    return cache / FOLDER / f"{name}.jsonl"
