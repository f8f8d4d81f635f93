"""Baselines: accepted measurements that later runs are judged against. One JSON file in git for each machine_key."""

from __future__ import annotations

import json
import math
import os
import re
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import Any

from ipexperf import lock, scratch
from ipexperf.bench.machine import source
from ipexperf.case import Case, from_json
from ipexperf.errors import BaselineError, UsageError
from ipexperf.judge.environment import PACKAGES
from ipexperf.judge.spread import centre
from ipexperf.proof import answers
from ipexperf.result import METRICS, PRIMARY, parts_of_work

FORMAT = 1
DIGITS = 6
"""Significant digits in a baseline file: finer than any timer, and readable in a diff."""
WIDTH = 110
"""Lists and records without nested records stay on one line up to this width."""


@dataclass(frozen=True, slots=True)
class Session:
    """One accepted run of a case: one value of each metric over its launches, and the step time of each launch."""

    run: str
    started_at: str
    commit: str
    launches: tuple[float, ...]
    metrics: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CaseBaseline:
    """The accepted sessions of a case, oldest first, and who accepted them, when and why."""

    case: Case
    sessions: tuple[Session, ...]
    accuracy: Mapping[str, float]
    reason: str
    accepted_by: str
    accepted_at: str
    expires: str | None
    environment: Mapping[str, Any]
    fingerprint: str | None = None
    """The fingerprint's version and digest in the newest session. None in old baselines without one."""
    answers: Mapping[str, Any] | None = None
    """The sketch of the answers that were accepted first. None if the case has none."""

    @property
    def lock(self) -> str:
        """The digest of the lock of its newest session. Empty in old baselines without one."""
        return str(self.environment.get("lock") or "")

    @property
    def log_times(self) -> list[list[float]]:
        """The logs of the step time of each launch of each session."""
        return [[math.log(time) for time in session.launches] for session in self.sessions]

    @property
    def costs(self) -> list[list[float]]:
        """What is compared of each launch of each session."""
        return [list(map(self.case.cost, session.launches)) for session in self.sessions]

    @property
    def step_time(self) -> float:
        """The centre of the sessions, in seconds a step."""
        return math.exp(centre([statistics.fmean(times) for times in self.log_times]))

    @property
    def work(self) -> dict[str, float]:
        """What is known of the work of a step in the newest session."""
        newest = max(self.sessions, key=lambda session: session.started_at).metrics
        return {name: newest[name] for name in parts_of_work() if name in newest}

    def expired(self, now: str) -> bool:
        """Whether the baseline has expired. It is still used, with a warning."""
        return self.expires is not None and self.expires[:10] < now[:10]


@dataclass(frozen=True, slots=True)
class Baselines:
    """All accepted cases of one machine_key, in a stable order."""

    machine_key: str
    cases: tuple[CaseBaseline, ...] = ()
    _by_id: dict[str, list[CaseBaseline]] = field(default_factory=dict, init=False, repr=False, compare=False)
    """The cases by their ids. Made by the first `find`, because a run looks for each of its cases."""

    def find(self, case: Case) -> CaseBaseline | None:
        """The baseline of exactly this case, or else one with the same id, which the judge will call not comparable."""
        if not self._by_id:
            for baseline in self.cases:
                self._by_id.setdefault(baseline.case.id, []).append(baseline)
        alike = self._by_id.get(case.id, ())
        closest = sorted(alike, key=lambda entry: (entry.case.uid != case.uid, entry.case.slot != case.slot))
        return closest[0] if closest else None

    def at(self, case: Case) -> CaseBaseline | None:
        """The baseline that accepting this case would extend or replace: the same work in any version."""
        return next((entry for entry in self.cases if entry.case.slot == case.slot), None)

    def put(self, baseline: CaseBaseline) -> Baselines:
        """A copy with this baseline added or replaced."""
        others = [entry for entry in self.cases if entry.case.slot != baseline.case.slot]
        return Baselines(self.machine_key, tuple(_in_order([*others, baseline])))


def _in_order(cases: Iterable[CaseBaseline]) -> list[CaseBaseline]:
    return sorted(cases, key=lambda entry: entry.case.slot)


def rounded(value: Any) -> Any:
    """The value as the file stores it: floats with six significant digits, lists instead of tuples."""
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, Mapping):
        return {name: rounded(inner) for name, inner in value.items()}
    return [rounded(inner) for inner in value] if isinstance(value, (list, tuple)) else value


def path_of(directory: Path, machine_key: str) -> Path:
    """The path of the baselines of a machine_key."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", machine_key):
        raise BaselineError(f"machine_key {machine_key!r} cannot name a file: expected letters, digits, '.', '_', '-'")
    return source.inside(directory, f"{machine_key}.json")


def machine_keys(directory: Path) -> list[str]:
    """The machine_keys that have a file in the folder, which may not exist yet."""
    try:
        files = [path for path in directory.iterdir() if path.suffix == ".json" and not path.name.startswith(".")]
        return sorted(path.stem for path in files)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise BaselineError(f"{directory} cannot be read as a folder of baselines: {error.strerror}") from error


def every(directory: Path) -> list[Baselines]:
    """The baselines of every machine_key that has a file in the folder."""
    return [read(directory, machine_key) for machine_key in machine_keys(directory)]


def read(directory: Path, machine_key: str) -> Baselines:
    """Read the baselines of a machine_key. Empty if there is no file yet."""
    path = path_of(directory, machine_key)
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Baselines(machine_key)
    except (OSError, ValueError) as error:
        raise BaselineError(
            f"{path} cannot be read as JSON ({error}): restore it with git, or delete it to start anew"
        ) from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        format_ = document.get("format") if isinstance(document, dict) else type(document).__name__
        other = "update ipexperf, or move the file away if it is not a baseline"
        raise BaselineError(f"{path} has format {format_!r}, this ipexperf reads format {FORMAT}: {other}")
    if document.get("machine_key") != machine_key:
        raise BaselineError(f"{path} belongs to machine_key {document.get('machine_key')!r}: its name must match")
    try:
        _refuse_edited(document["environments"])
        environments = {
            name: _restored(environment, directory) for name, environment in document["environments"].items()
        }
        return Baselines(machine_key, _cases(document["cases"], environments))
    except UsageError as error:
        raise BaselineError(f"{path}: {error}") from error
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise BaselineError(
            f"{path} is damaged ({type(error).__name__}: {error}): restore it with git, or accept anew"
        ) from error


def _refuse_edited(environments: Mapping[str, Any]) -> None:
    """Raise ValueError if the content of an environment does not have the digest that is its name in the file."""
    for name, environment in environments.items():
        if _digest(environment) != name:
            raise ValueError(f"environment {name} is not what its run recorded: it was edited")


def write(directory: Path, baselines: Baselines) -> Path:
    """Write the file atomically, in a stable order and format."""
    return write_text(path_of(directory, baselines.machine_key), dumps(baselines))


def write_text(path: Path, text: str) -> Path:
    """Write a file of the baselines' folder, whole or not at all."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with scratch.folder("baseline", path.parent) as folder:
            part = folder / path.name
            with part.open("w", encoding="utf-8", newline="\n") as stream:
                stream.write(text)
                stream.flush()
                os.fsync(stream.fileno())
            part.chmod(0o644)  # the usual permissions of a file in a repository, whatever the umask
            part.replace(path)
    except OSError as error:
        raise BaselineError(f"{path} cannot be written: {error}") from error
    return path


def dumps(baselines: Baselines) -> str:
    """The text of the file. Environments are stored once, under a hash of their content."""
    environments: dict[str, Any] = {}
    cases = []
    for baseline in _in_order(baselines.cases):
        environment = rounded(_stored(baseline.environment))
        digest = _digest(environment)
        environments[digest] = _ordered(environment)
        cases.append(
            {
                "id": baseline.case.id,
                "case": baseline.case.to_json(),
                "reason": baseline.reason,
                "accepted_by": baseline.accepted_by,
                "accepted_at": baseline.accepted_at,
                "expires": baseline.expires,
                "environment": digest,
                **({"fingerprint": baseline.fingerprint} if baseline.fingerprint else {}),
                "accuracy": _ordered(baseline.accuracy),
                **({"answers": _ordered(baseline.answers)} if baseline.answers else {}),
                "sessions": [
                    {**asdict(session), "metrics": _ordered(session.metrics)} for session in baseline.sessions
                ],
            }
        )
    document = {
        "format": FORMAT,
        "machine_key": baselines.machine_key,
        "environments": _ordered(environments),
        "cases": cases,
    }
    try:
        return _text(rounded(document)) + "\n"
    except (TypeError, ValueError) as error:
        raise BaselineError(
            f"the baselines of {baselines.machine_key} hold a value that JSON cannot: {error}"
        ) from error


def _digest(environment: Mapping[str, Any]) -> str:
    """The name of an environment in the file."""
    import hashlib

    return hashlib.sha256(json.dumps(environment, sort_keys=True).encode()).hexdigest()[:12]


def _stored(environment: Mapping[str, Any]) -> dict[str, Any]:
    """The environment as the file keeps it: without the packages, which the file of its lock lists."""
    document = {name: value for name, value in environment.items() if name != "lock_text"}
    if document.get("lock"):
        software = document.get("software", {})
        document["software"] = {name: value for name, value in software.items() if name != PACKAGES}
    return document


def _restored(document: Any, directory: Path) -> Any:
    """The environment with the packages of its lock, if the lock has a file."""
    source.check_names(*(document.get("source") or ()), *(document.get("source_paths") or ()))
    digest = document.get("lock")
    if not digest:
        return document
    path = lock.path_of(directory, str(digest))
    if not path.exists():
        return document
    versions = lock.read(path).versions
    return {**document, "software": {**document.get("software", {}), PACKAGES: versions}}


def _ordered(value: Any) -> Any:
    return {name: _ordered(value[name]) for name in sorted(value)} if isinstance(value, Mapping) else value


def _text(value: Any, indent: int = 0) -> str:
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    line = json.dumps(value, ensure_ascii=False, allow_nan=False)
    if not value or not isinstance(value, (dict, list)):
        return line
    if len(line) + indent <= WIDTH and not any(isinstance(inner, dict) for inner in inside):
        return line
    pad = " " * (indent + 2)
    if isinstance(value, dict):
        names = [f"{json.dumps(name, ensure_ascii=False)}: " for name in value]
        rows = [f"{pad}{name}{_text(inner, indent + 2)}" for name, inner in zip(names, inside, strict=True)]
        return "{\n" + ",\n".join(rows) + "\n" + " " * indent + "}"
    return "[\n" + ",\n".join(pad + _text(inner, indent + 2) for inner in inside) + "\n" + " " * indent + "]"


def _cases(entries: list[Any], environments: dict[str, Any]) -> tuple[CaseBaseline, ...]:
    """Read every case of a file. Duplicates, as after a bad merge, are refused: the next accept would lose one."""
    cases = _in_order(_case(entry, environments) for entry in entries)
    for case, other in pairwise(cases):
        if case.case.slot == other.case.slot:
            raise ValueError(f"{case.case.label} is there twice")
    return tuple(cases)


def _case(entry: dict[str, Any], environments: dict[str, Any]) -> CaseBaseline:
    sessions = tuple(
        Session(
            run=str(session["run"]),
            started_at=str(session["started_at"]),
            commit=str(session["commit"]),
            launches=tuple(float(value) for value in session["launches"]),
            metrics=_numbers(entry["id"], session["metrics"]),
        )
        for session in entry["sessions"]
    )
    if not sessions or not all(
        session.launches and all(0 < time < math.inf for time in session.launches) for session in sessions
    ):
        raise ValueError(f"{entry['id']} needs sessions with launches above 0 s")
    if len({session.run for session in sessions}) < len(sessions):
        # Copies of one session agree, so sessions would seem to differ less than they do.
        raise ValueError(f"{entry['id']} has a session twice")
    for session in sessions:
        # Both were computed from the same launches. An edit by hand or a bad merge changes only one of them.
        stated = session.metrics.get(PRIMARY)
        if stated is not None and not math.isclose(statistics.median(session.launches), stated, rel_tol=1e-4):
            launches = f"the median of its launches is {statistics.median(session.launches):.{DIGITS}g}"
            raise ValueError(f"{entry['id']}, run {session.run}: its {PRIMARY} is {stated:.{DIGITS}g}, but {launches}")
    return CaseBaseline(
        case=_work(entry["id"], entry["case"]),
        sessions=sessions,
        accuracy=_numbers(entry["id"], entry["accuracy"]),
        reason=str(entry["reason"]),
        accepted_by=str(entry["accepted_by"]),
        accepted_at=str(entry["accepted_at"]),
        expires=None if entry["expires"] is None else date.fromisoformat(entry["expires"]).isoformat(),
        environment=environments[entry["environment"]],
        fingerprint=None if entry.get("fingerprint") is None else str(entry["fingerprint"]),
        answers=None if entry.get("answers") is None else answers.read(entry["answers"]),
    )


def _work(name: str, document: dict[str, Any]) -> Case:
    """The case. Its id is what a reviewer reads."""
    case = from_json(document)
    if case.id != name:
        raise ValueError(f"{name} is the id of an entry whose case is {case.id}")
    return case


def _numbers(name: str, number: Mapping[str, Any]) -> dict[str, float]:
    """Metrics by name. NaN, which Python's JSON accepts, is refused: it would switch off checks."""
    numbers = {metric: float(value) for metric, value in number.items()}
    for metric, value in numbers.items():
        negative = value < 0 and metric in METRICS and METRICS[metric].unit in {"s", "bytes"}
        if not math.isfinite(value) or negative or (value <= 0 and metric == PRIMARY):
            raise ValueError(f"{name} has {value:g} as its {metric}")
    return numbers
