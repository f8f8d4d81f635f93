"""The records in a file of evidence: the machine, the cases with their proof, and the rows that they show."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ipexperf.bench.evidence import fingerprint, instructions
from ipexperf.bench.machine.facts import Facts
from ipexperf.case import Case
from ipexperf.result import Check
from ipexperf.tools import codec
from ipexperf.tools.evidence import features
from ipexperf.tools.evidence.features import Row

SCHEMA = 1
"""The version of the format. A file of another version is refused."""
State = Literal["held", "failed", "unreached", "impossible"]
"""`held`: a case proved the row. `unreached`: the budget was spent before. `impossible`: the machine cannot show it."""
OK = "ok"
LEVELS = (
    ("amx", "AMX", ("amx_tile", "amx_bf16", "amx_int8")),
    ("avx512-bf16", "AVX-512 BF16", ("avx512_bf16",)),
    ("avx512-vnni", "AVX-512 VNNI", ("avx512_vnni",)),
    ("avx512", "AVX-512", ("avx512f",)),
    ("avx2", "AVX2", ("avx2",)),
)
"""The instruction levels of CPUs, highest first: name in file names, name for people, flags of which any will do."""
OTHER_LEVEL = ("baseline", "no AVX2")
_NOISE = re.compile(r"\(.*?\)|@.*|\b(?:CPU|Processor|Corporation|\d+-Core)\b")
"""The words in names of processors that do not tell the model."""


@dataclass(frozen=True, slots=True)
class Speed:
    """The speed of a case relative to another case of its round, with the interval."""

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
    """Why it failed, in a sentence."""
    emulated: bool = False
    proof: tuple[Check, ...] = ()
    accuracy: tuple[Check, ...] = ()
    metrics: Mapping[str, float] = field(default_factory=dict)
    """The metrics of accuracy."""
    fingerprint: str | None = None
    """The digest of its fingerprint. None: it has none, or two looks differed."""
    busy: str = ""
    """What else kept the machine busy, or an empty text. Its times are less certain then; its proof counts as much."""
    speed: Speed | None = None
    log: tuple[str, ...] = ()
    """The last lines of a launch that failed."""

    @property
    def sound(self) -> bool:
        """True if it ran to its end and every check of its proof and accuracy passed."""
        return self.outcome == OK and bool(self.proof) and all(check.ok for check in (*self.proof, *self.accuracy))

    @property
    def why(self) -> str:
        """The reason why it is not sound, or an empty text."""
        if self.outcome != OK:
            return f"{self.outcome}: {self.reason}"
        wrong = next((str(check) for check in (*self.proof, *self.accuracy) if not check.ok), "")
        return wrong or ("" if self.proof else "it has no proof")


@dataclass(frozen=True, slots=True)
class RowRecord:
    """A row, its state, and the case that decided it."""

    row: Row
    state: State
    case: str = ""
    """The uid of the case that shows it, or that failed to."""
    why: str = ""
    """Why it failed, was not reached, or is impossible here."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The content of one file: the cases and rows of one device of one machine."""

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
        """The name of the file: processor, instruction level, accelerator, device. No names of hosts or people."""
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
        """The facts of the machine that rows depend on."""
        return facts(self.hardware)


def facts(hardware: Mapping[str, Any]) -> Facts:
    """Make facts of recorded hardware, without packages."""
    return Facts("", {}, cpu_flags=frozenset(hardware["isa"]), cores=hardware["cores"])


def limited(variables: Mapping[str, str]) -> str:
    """Return the variable that keeps libraries from using all instructions of the CPU, or an empty text."""
    unlimited = ("", "all", "default")
    names = (name for name in fingerprint.ISA_VARIABLES if variables.get(name, "").lower() not in unlimited)
    return next((f"{name}={variables[name]}" for name in names), "")


def level(isa: Iterable[str]) -> tuple[str, str]:
    """Return the instruction level of these flags: its name in file names, and its name for people."""
    flags = set(isa)
    return next(((short, name) for short, name, any_of in LEVELS if flags & set(any_of)), OTHER_LEVEL)


def holds(row: Row, record: CaseRecord) -> bool:
    """Return True if a case that shows this row proved it."""
    if row.kind == "failure":
        return record.outcome == row.of("outcome")
    if not record.sound:
        return False
    if row.kind == "instructions":
        expected = instructions.wanted(features.means(row))
        return any(check.name == "instructions" and check.expected == expected for check in record.proof)
    if row.kind == "condition":
        return any(check.name == "placement" for check in record.proof)
    return True


def resolved(
    row: Row, cases: Sequence[CaseRecord], impossible: Mapping[Row, str], facts: Facts, unreached: str
) -> RowRecord:
    """Return the state of a row. One proving case is enough; else the first that should have says why not."""
    showing = [record for record in cases if features.shows(row, record.case, facts)]
    if good := next((record for record in showing if holds(row, record)), None):
        return RowRecord(row, "held", good.case.uid)
    if row in impossible:
        return RowRecord(row, "impossible", why=impossible[row])
    if row.kind == "instructions":  # a case may prove its dtype with another library: then the row has not failed
        showing = [record for record in showing if not record.sound]
    if slow := next((record for record in showing if record.outcome == "timed_out" and row.kind != "failure"), None):
        return RowRecord(row, "unreached", slow.case.uid, slow.why)
    if bad := next(iter(showing), None):
        why = bad.why or "the case ran, and its proof has no check of this"
        why = f"it ended with {bad.outcome} instead" if row.kind == "failure" and bad.outcome == OK else why
        return RowRecord(row, "failed", bad.case.uid, why)
    return RowRecord(row, "unreached", why=unreached)


def document(evidence: Evidence) -> dict[str, Any]:
    """Return the content of a file as JSON values."""
    values = {
        "schema": SCHEMA,
        "machine": evidence.machine,
        "device": evidence.device,
        "made": dict(evidence.made),
        "hardware": dict(evidence.hardware),
        "software": dict(evidence.software),
        "variables": dict(evidence.variables),
        "cases": [_case(record) for record in evidence.cases],
        "rows": [_row(record) for record in evidence.rows],
    }
    return {"digest": digest(values), **values}


def digest(values: Mapping[str, Any]) -> str:
    """Return the hash of a file's values except the digest. It detects edits by hand; it is no signature."""
    hashed = {name: value for name, value in values.items() if name != "digest"}
    return hashlib.sha256(json.dumps(hashed, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _case(record: CaseRecord) -> dict[str, Any]:
    values: dict[str, Any] = codec.plain(record)
    optional = {name: values.pop(name) for name in ("reason", "busy", "speed", "log")}
    values = {"id": record.case.id, "uid": record.case.uid, **values, "case": record.case.to_json()}
    return values | {name: value for name, value in optional.items() if value}


def _row(record: RowRecord) -> dict[str, Any]:
    values = {"kind": record.row.kind, **dict(record.row.subject), "state": record.state}
    return values | {name: value for name, value in (("case", record.case), ("why", record.why)) if value}


def text(evidence: Evidence) -> str:
    """Return the text of a file: one line for each case and row, so that a diff shows what changed."""
    lines = []
    for name, value in document(evidence).items():
        if isinstance(value, list):
            inside = ",\n".join(f"  {json.dumps(item, allow_nan=False)}" for item in value)
            lines.append(f'"{name}": [\n{inside}\n]' if value else f'"{name}": []')
        else:
            lines.append(f'"{name}": {json.dumps(value, allow_nan=False)}')
    return "{\n" + ",\n".join(lines) + "\n}\n"
