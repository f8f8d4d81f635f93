"""The log of a search: the answers of its candidates, in a file that the next try reads."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ipexperf import scratch
from ipexperf.errors import UsageError
from ipexperf.judge.bisection import Answer

if TYPE_CHECKING:
    from ipexperf.case import Case

FOLDER = "bisect"


@dataclass(frozen=True, slots=True)
class Measured:
    """The answer of one candidate, with its reason and its numbers."""

    answer: Answer
    reason: str
    ratio: float | None = None
    lo: float | None = None
    hi: float | None = None
    kernels: str | None = None
    """The digest of the candidate's fingerprint."""
    others: str | None = None
    """The digest of the good end's fingerprint in the same pair."""
    clock: bool = True
    """False if only the fingerprint answered."""
    seconds: float = 0.0
    ran: tuple[str, ...] = ()
    """How its kernels differ from those of the good end."""
    machine: str = ""
    """The machine_key of the machine that ran it. Empty if it did not run."""
    lasting: bool = True
    """False if another try may answer otherwise, as after a failed installation: the index may be back by then."""

    def to_json(self) -> dict[str, Any]:
        return {**dataclasses.asdict(self), "answer": self.answer.value}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Measured:
        return cls(**{**document, "answer": Answer(document["answer"]), "ran": tuple(document["ran"])})


class AnswerLog:
    """The answers of one search, by the candidate's content. Each is on disk before the next question."""

    def __init__(self, path: Path, *, fresh: bool = False) -> None:
        """Read the answers of an earlier try, or delete them if `fresh`."""
        self.path = path
        self._answers: dict[str, Measured] = {}
        if fresh:
            path.unlink(missing_ok=True)
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
                self._answers[document["key"]] = Measured.from_json(document["measured"])

    def __len__(self) -> int:
        return len(self._answers)

    def get(self, key: str) -> Measured | None:
        return self._answers.get(key)

    def put(self, key: str, measured: Measured) -> None:
        """Write an answer, unless the next try may answer otherwise. An unsure one may, on a quieter machine."""
        if measured.answer is Answer.UNSURE or not measured.lasting:
            return
        self._answers[key] = measured
        line = json.dumps({"key": key, "measured": measured.to_json()})
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
