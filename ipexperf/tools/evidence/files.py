"""Read and check files of evidence. The cases in a file must prove every row that it claims."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ipexperf.bench import loading, precision, registry
from ipexperf.case import Case
from ipexperf.dtypes import DTYPES
from ipexperf.errors import EvidenceError
from ipexperf.plan import knobs
from ipexperf.result import LAUNCH_OUTCOMES, METRICS
from ipexperf.tools import codec
from ipexperf.tools.evidence import NETWORKS, features, records
from ipexperf.tools.evidence.features import Row
from ipexperf.tools.evidence.records import OK, SCHEMA, CaseRecord, Evidence, RowRecord

FOLDER = Path("docs") / "evidence"
"""The folder of the files, from the root of a checkout."""
_OUTCOMES = tuple(name for name in LAUNCH_OUTCOMES if name not in ("contended", "interrupted", "refused"))
"""The outcomes that count as evidence. A contended, interrupted or refused launch proves nothing."""


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
        evidence = _evidence(document)
        reason = next(_wrong(evidence, path), "")
    except ValueError as error:
        reason = str(error)
    except (KeyError, TypeError, AttributeError) as error:
        reason = f"it is no file of evidence: {error!r}"
    if reason:
        raise EvidenceError(f"{path}: {reason}")
    return evidence


def _evidence(document: Any) -> Evidence:
    """Make the records of a document. Raise ValueError with the reason, or what Python raises for other documents."""
    if document["schema"] != SCHEMA:
        text = f"its schema is {document['schema']!r}, and this version reads {SCHEMA}"
        raise ValueError(f"{text}: make it again with ipexperf evidence")
    if document["digest"] != records.digest(document):
        raise ValueError("its digest does not match its content: it was changed after it was written")
    evidence = Evidence(
        document["device"],
        document["made"],
        document["hardware"],
        document["software"],
        document["variables"],
        tuple(_case(**case) for case in document["cases"]),
        tuple(_row(**row) for row in document["rows"]),
    )
    if document["machine"] != evidence.machine:
        raise ValueError(f"its machine is {document['machine']!r}, and its hardware is called {evidence.machine}")
    return evidence


def _case(case: dict[str, Any], id: str, uid: str, **values: Any) -> CaseRecord:  # noqa: A002 - the file calls it so
    known = Case.from_json(case)
    if (id, uid) != (known.id, known.uid):
        raise ValueError(f"{known.id}: its id or uid is that of another case")
    record = codec.record(CaseRecord, {**values, "case": codec.plain(known)})
    if record.outcome not in _OUTCOMES:
        raise ValueError(f"{known.id}: its outcome {record.outcome!r} is none of {', '.join(_OUTCOMES)}")
    if unknown := [name for name in record.metrics if name not in METRICS]:
        raise ValueError(f"{known.id}: its metric {unknown[0]!r} is unknown")
    if record.speed is not None and not 0 < record.speed.lo <= record.speed.ratio <= record.speed.hi:
        raise ValueError(f"{known.id}: the interval of its speed does not contain the ratio")
    return record


def _row(kind: str, state: str, case: str = "", why: str = "", **subject: str) -> RowRecord:
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
    if limit := records.limited(evidence.variables):
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
    elif not records.holds(row, case):
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
