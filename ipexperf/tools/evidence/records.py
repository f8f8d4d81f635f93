"""A file of evidence: the machine, the cases with their proof, and the rows that these prove. Others are refused."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ipexperf.bench import loading, precision, registry
from ipexperf.bench.evidence import fingerprint, instructions
from ipexperf.bench.machine.facts import Facts
from ipexperf.case import Case
from ipexperf.dtypes import DTYPES
from ipexperf.errors import EvidenceError
from ipexperf.plan import knobs
from ipexperf.result import LAUNCH_OUTCOMES, METRICS, Check
from ipexperf.tools import codec
from ipexperf.tools.evidence import NETWORKS, features
from ipexperf.tools.evidence.features import Row

FOLDER = Path("docs") / "evidence"
"""The folder of the files, from the root of a checkout."""
SCHEMA = 1
"""The version of the format. A file of another version is refused."""
State = Literal["held", "failed", "unreached", "impossible"]
"""`held`: a case proved the row. `unreached`: the budget was spent before. `impossible`: the machine cannot show it."""
OF_MACHINE = ("device", "made", "hardware", "software", "variables")
"""The keys of a file that are as in `Evidence`."""
OK = "ok"
OUTCOMES = tuple(name for name in LAUNCH_OUTCOMES if name not in ("contended", "interrupted", "refused"))
"""The outcomes that count as evidence. A contended, interrupted or refused launch proves nothing."""
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
        **{name: getattr(evidence, name) for name in OF_MACHINE},
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


def all_of(folder: Path) -> list[Evidence]:
    """Read every file in a folder, in the order of names. Raise EvidenceError for the first that is wrong."""
    return [read(path) for path in sorted(folder.glob("*.json"))]


def read(path: Path) -> Evidence:
    """Read a file. Raise EvidenceError, in one sentence, if it is malformed or claims what its cases do not prove."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise EvidenceError(f"{path} cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise EvidenceError(f"{path}: it is not JSON: {error}") from None
    try:
        evidence = _evidence_of(document)
        reason = next(_wrong(evidence, path), "")
    except ValueError as error:
        reason = str(error)
    except (KeyError, TypeError, AttributeError) as error:
        reason = f"it is no file of evidence: {error!r}"
    if reason:
        raise EvidenceError(f"{path}: {reason}")
    return evidence


def _evidence_of(document: Any) -> Evidence:
    """Make the records of a document. Raise ValueError with the reason, or what Python raises for other documents."""
    if document["schema"] != SCHEMA:
        text = f"its schema is {document['schema']!r}, and this version reads {SCHEMA}"
        raise ValueError(f"{text}: make it again with ipexperf evidence")
    if document["digest"] != digest(document):
        raise ValueError("its digest does not match its content: it was changed after it was written")
    evidence = Evidence(
        **{name: document[name] for name in OF_MACHINE},
        cases=tuple(_case_of(**case) for case in document["cases"]),
        rows=tuple(_row_of(**row) for row in document["rows"]),
    )
    if document["machine"] != evidence.machine:
        raise ValueError(f"its machine is {document['machine']!r}, and its hardware is called {evidence.machine}")
    return evidence


def _case_of(case: dict[str, Any], id: str, uid: str, **values: Any) -> CaseRecord:  # noqa: A002 - the file calls it so
    known = Case.from_json(case)
    if (id, uid) != (known.id, known.uid):
        raise ValueError(f"{known.id}: its id or uid is that of another case")
    record = codec.record(CaseRecord, {**values, "case": codec.plain(known)})
    if record.outcome not in OUTCOMES:
        raise ValueError(f"{known.id}: its outcome {record.outcome!r} is none of {', '.join(OUTCOMES)}")
    if unknown := [name for name in record.metrics if name not in METRICS]:
        raise ValueError(f"{known.id}: its metric {unknown[0]!r} is unknown")
    if record.speed is not None and not 0 < record.speed.lo <= record.speed.ratio <= record.speed.hi:
        raise ValueError(f"{known.id}: the interval of its speed does not contain the ratio")
    return record


def _row_of(kind: str, state: str, case: str = "", why: str = "", **subject: str) -> RowRecord:
    row = {"kind": kind, "subject": list(subject.items())}
    return codec.record(RowRecord, {"row": row, "state": state, "case": case, "why": why})


def _wrong(evidence: Evidence, path: Path) -> Iterator[str]:
    """Yield a sentence for each claim of the file that does not hold."""
    if path.stem != evidence.machine:
        yield f"it should be called {evidence.machine}.json, after its hardware"
    if evidence.device not in registry.devices.names():
        yield f"its device {evidence.device!r} is none of {', '.join(registry.devices.names())}"
        return
    accelerator = evidence.hardware.get("accelerator") or {}
    device = registry.devices.get(evidence.device)
    if device.accelerator and accelerator.get("name") != device.name and any(record.sound for record in evidence.cases):
        yield f"its device is {device.name}, and its hardware has none"
    if limit := limited(evidence.variables):
        yield f"{limit} kept libraries from using the instructions of its hardware"
    yield from _wrong_cases(evidence)
    yield from _wrong_rows(evidence)


def _wrong_cases(evidence: Evidence) -> Iterator[str]:
    uids = set()
    for record in evidence.cases:
        case = record.case
        if case.uid in uids:
            yield f"{case.id} is there twice"
        uids.add(case.uid)
        if case.device != evidence.device:
            yield f"{case.id} ran on {case.device}, and the file is of {evidence.device}"
        if case.dtype not in DTYPES:
            yield f"{case.id}: there is no dtype {case.dtype}"
            continue
        emulated = precision.emulated(case.device, case.dtype, evidence.facts.cpu_flags)
        if record.outcome == OK and record.emulated != emulated:
            has = "only emulates" if emulated else "has instructions for"
            yield f"{case.id}: its hardware {has} {case.dtype}, and the case says otherwise"
    for record in evidence.cases:
        if record.speed is not None and record.speed.of not in uids:
            yield f"{record.case.id}: its speed is compared with a case that is not in the file"


def _wrong_rows(evidence: Evidence) -> Iterator[str]:
    loading.load([str(NETWORKS)])
    all_rows = set(features.every(evidence.device))
    cases = {record.case.uid: record for record in evidence.cases}
    rows_so_far = set()
    for record in evidence.rows:
        row = record.row
        if row not in all_rows:
            yield f"there is no row {row}"
            continue
        if row in rows_so_far:
            yield f"the row {row} is there twice"
        rows_so_far.add(row)
        if record.state == "held":
            yield from _unproven(record, cases.get(record.case), evidence)
        elif not record.why:
            yield f"the row {row} is {record.state} without a reason"


def _unproven(claim: RowRecord, case: CaseRecord | None, evidence: Evidence) -> Iterator[str]:
    """Yield the reason why a row that the file calls held is not proved, if there is one."""
    row = claim.row
    if reason := features.not_here(row, evidence.device, evidence.facts):
        yield f"the row {row} cannot hold on this hardware: {reason}"
    elif case is None:
        yield f"the row {row} holds by a case that is not in the file"
    elif not _shows(row, case, evidence):
        yield f"the row {row} holds by {case.case.id}, which does not show it"
    elif not holds(row, case):
        yield f"the row {row} holds without its proof: {case.case.id}: {case.why or 'its proof has no check of this'}"


def _shows(row: Row, case: CaseRecord, evidence: Evidence) -> bool:
    """Return True if the case shows the row. A case with unknown leaves or impossible settings shows nothing."""
    registered: Mapping[str, Callable[[], tuple[str, ...]]] = {
        "mode": registry.modes.names,
        "stack": registry.stacks.names,
        "model": registry.models.names,
    }
    if any(getattr(case.case, name) not in names() for name, names in registered.items()):
        return False
    knobs_of_case = knobs.of(features.cell_of(case.case))
    if any(name in knobs_of_case and knobs_of_case[name].wrong(value) for name, value in case.case.knobs):
        return False
    return features.shows(row, case.case, evidence.facts)
