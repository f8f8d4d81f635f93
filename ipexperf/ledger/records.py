"""The records of a file of evidence: cases with their proof, rows with what shows them, and the machine."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from ipexperf.bench.evidence import fingerprint, instructions
from ipexperf.bench.machine.facts import Facts
from ipexperf.case import Case
from ipexperf.plan import features
from ipexperf.plan.features import Row
from ipexperf.result import Check

KEYS = (
    "digest",
    "schema",
    "machine",
    "device",
    "made",
    "hardware",
    "software",
    "variables",
    "cases",
    "rows",
)
"""What every file has."""
SCHEMA = 1
"""Version of the files. A file of another version is refused."""
State = Literal["held", "failed", "unreached", "impossible"]
STATES: tuple[State, ...] = ("held", "failed", "unreached", "impossible")
"""`held`: a case shows the row and proved it. `unreached`: the time was up. `impossible`: the machine can't show it."""
OK = "ok"
LEVELS = (
    ("amx", "AMX", ("amx_tile", "amx_bf16", "amx_int8")),
    ("avx512-bf16", "AVX-512 BF16", ("avx512_bf16",)),
    ("avx512-vnni", "AVX-512 VNNI", ("avx512_vnni",)),
    ("avx512", "AVX-512", ("avx512f",)),
    ("avx2", "AVX2", ("avx2",)),
)
"""The instruction levels of CPUs, the highest first: in file names, for people, and flags any of which tells it."""
OTHER_LEVEL = ("baseline", "no AVX2")
_NOISE = re.compile(r"\(.*?\)|@.*|\b(?:CPU|Processor|Corporation|\d+-Core)\b")
"""What the names of processors have beside the model."""


@dataclass(frozen=True, slots=True)
class Speed:
    """How many times as fast as another case of its round a case was, with the interval."""

    of: str
    """The uid of the other case."""
    ratio: float
    lo: float
    hi: float


@dataclass(frozen=True, slots=True)
class CaseRecord:
    """A case that ran, or failed."""

    case: Case
    outcome: str
    """`ok`, or how the launch ended."""
    reason: str = ""
    """The failure in a sentence."""
    emulated: bool = False
    proof: tuple[Check, ...] = ()
    accuracy: tuple[Check, ...] = ()
    metrics: Mapping[str, float] = field(default_factory=dict)
    """The metrics of accuracy."""
    fingerprint: str | None = None
    """The digest of what ran. None: it has none, or was not the same twice."""
    busy: str = ""
    """What else the machine did meanwhile, or an empty text."""
    speed: Speed | None = None
    log: tuple[str, ...] = ()
    """The last lines of a launch that failed."""

    @property
    def sound(self) -> bool:
        """Whether it ran to its end and every check of its proof and accuracy held."""
        return self.outcome == OK and bool(self.proof) and all(one.ok for one in (*self.proof, *self.accuracy))

    @property
    def why(self) -> str:
        """Why it is not sound, or an empty text."""
        if self.outcome != OK:
            return f"{self.outcome}: {self.reason}"
        wrong = next((str(one) for one in (*self.proof, *self.accuracy) if not one.ok), "")
        return wrong or ("" if self.proof else "it has no proof")


@dataclass(frozen=True, slots=True)
class RowRecord:
    """What became of a row."""

    row: Row
    state: State
    case: str = ""
    """The uid of the case that shows it, or that failed to."""
    why: str = ""
    """Why it did not hold, was not reached, or can't be shown here."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """One file: what one device of one machine has shown."""

    device: str
    made: Mapping[str, Any]
    """When, by which version of ipexperf, and in how many seconds."""
    hardware: Mapping[str, Any]
    software: Mapping[str, Any]
    variables: Mapping[str, str]
    """The variables that tune libraries."""
    cases: tuple[CaseRecord, ...]
    rows: tuple[RowRecord, ...]

    @property
    def machine(self) -> str:
        """The name of the machine and device, without names of hosts and people. It names the file."""
        words = [_NOISE.sub(" ", str(self.hardware["cpu"])), level(self.hardware["isa"])[0]]
        if accelerator := self.hardware.get("accelerator"):
            words.append(str(accelerator["properties"]))
        return re.sub(r"[^a-z0-9]+", "-", " ".join([*words, self.device]).lower()).strip("-")

    @property
    def title(self) -> str:
        """The name for people."""
        names = [f"{' '.join(_NOISE.sub(' ', str(self.hardware['cpu'])).split())}, {level(self.hardware['isa'])[1]}"]
        if accelerator := self.hardware.get("accelerator"):
            names.insert(0, str(accelerator["properties"]))
        return "; ".join(names)

    @property
    def facts(self) -> Facts:
        """What rows must know of the machine."""
        return facts(self.hardware)


def facts(hardware: Mapping[str, Any]) -> Facts:
    """The facts of recorded hardware, which has no packages."""
    return Facts("", {}, cpu_flags=frozenset(hardware["isa"]), cores=hardware["cores"])


def limited(variables: Mapping[str, str]) -> str:
    """The variable that keeps libraries from using all instructions of the CPU, or an empty text."""
    free = ("", "all", "default")
    names = (name for name in fingerprint.ISA_VARIABLES if variables.get(name, "").lower() not in free)
    return next((f"{name}={variables[name]}" for name in names), "")


def level(isa: Iterable[str]) -> tuple[str, str]:
    """The instruction level of these flags: for file names, and for people."""
    flags = set(isa)
    return next(((short, name) for short, name, any_of in LEVELS if flags & set(any_of)), OTHER_LEVEL)


def holds(row: Row, record: CaseRecord) -> bool:
    """Whether a case that shows this row proved it."""
    if row.kind == "failure":
        return record.outcome == row.of("outcome")
    if not record.sound:
        return False
    if row.kind == "instructions":
        expected = instructions.wanted(features.means(row))
        return any(check.name == "instructions" and check.expected == expected for check in record.proof)
    if row.kind == "condition" and row.of("setting") == "placement":
        return any(check.name == "placement" for check in record.proof)
    return True


def resolve(
    rows: Sequence[Row],
    cases: Sequence[CaseRecord],
    impossible: Mapping[Row, str],
    here: Facts,
    unreached: str,
) -> list[RowRecord]:
    """What became of every row. One case that holds is enough; else the first that should have shown it says why."""
    return [_resolved(row, cases, impossible, here, unreached) for row in rows]


def _resolved(
    row: Row, cases: Sequence[CaseRecord], impossible: Mapping[Row, str], here: Facts, unreached: str
) -> RowRecord:
    shown = [one for one in cases if features.shows(row, one.case, here)]
    if good := next((one for one in shown if holds(row, one)), None):
        return RowRecord(row, "held", good.case.uid)
    if row in impossible:
        return RowRecord(row, "impossible", why=impossible[row])
    if row.kind == "instructions":  # a case that proves its dtype by other libraries is no failure of the row
        shown = [one for one in shown if not one.sound]
    if slow := next((one for one in shown if one.outcome == "timed_out" and row.kind != "failure"), None):
        return RowRecord(row, "unreached", slow.case.uid, slow.why)
    if bad := next(iter(shown), None):
        why = bad.why or "the case ran, and its proof has no check of this"
        why = f"it ended with {bad.outcome} instead" if row.kind == "failure" and bad.outcome == OK else why
        return RowRecord(row, "failed", bad.case.uid, why)
    return RowRecord(row, "unreached", why=unreached)


def document(evidence: Evidence) -> dict[str, Any]:
    """The JSON values of a file."""
    whole = {
        "schema": SCHEMA,
        "machine": evidence.machine,
        "device": evidence.device,
        "made": dict(evidence.made),
        "hardware": dict(evidence.hardware),
        "software": dict(evidence.software),
        "variables": dict(evidence.variables),
        "cases": [_case(one) for one in evidence.cases],
        "rows": [_row(one) for one in evidence.rows],
    }
    return {"digest": digest(whole), **whole}


def digest(values: Mapping[str, Any]) -> str:
    """The hash of a file's values, but for the digest itself. It finds what was changed by hand; it is no signature."""
    rest = {name: value for name, value in values.items() if name != "digest"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _case(one: CaseRecord) -> dict[str, Any]:
    values: dict[str, Any] = {
        "id": one.case.id,
        "uid": one.case.uid,
        "case": one.case.to_json(),
        "outcome": one.outcome,
        "emulated": one.emulated,
        "proof": [asdict(check) for check in one.proof],
        "accuracy": [asdict(check) for check in one.accuracy],
        "metrics": dict(one.metrics),
        "fingerprint": one.fingerprint,
    }
    optional = {
        "reason": one.reason,
        "busy": one.busy,
        "speed": asdict(one.speed) if one.speed else None,
        "log": list(one.log),
    }
    return values | {name: value for name, value in optional.items() if value}


def _row(one: RowRecord) -> dict[str, Any]:
    values = {"kind": one.row.kind, **dict(one.row.subject), "state": one.state}
    return values | {name: value for name, value in (("case", one.case), ("why", one.why)) if value}


def text(evidence: Evidence) -> str:
    """The text of a file: a line for each case and row, so that a reviewer sees what changed."""
    lines = []
    for name, value in document(evidence).items():
        if isinstance(value, list):
            inside = ",\n".join(f"  {json.dumps(one, allow_nan=False)}" for one in value)
            lines.append(f'"{name}": [\n{inside}\n]' if value else f'"{name}": []')
        else:
            lines.append(f'"{name}": {json.dumps(value, allow_nan=False)}')
    return "{\n" + ",\n".join(lines) + "\n}\n"
