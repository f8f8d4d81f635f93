"""Read and check files of evidence. The cases in a file must prove every row that it claims."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from ipexperf.bench import loading, precision, registry
from ipexperf.case import AXES, Case
from ipexperf.dtypes import DTYPES
from ipexperf.errors import EvidenceError
from ipexperf.plan import knobs
from ipexperf.result import LAUNCH_OUTCOMES, METRICS, Check
from ipexperf.tools.evidence import NETWORKS, features, records
from ipexperf.tools.evidence.features import KINDS, Row
from ipexperf.tools.evidence.records import KEYS, OK, SCHEMA, STATES, CaseRecord, Evidence, RowRecord, Speed

FOLDER = Path("docs") / "evidence"
"""The folder of the files, from the root of a checkout."""
LARGEST = 16 * 2**20
"""The largest file that is read, in bytes."""
_DIGEST = re.compile(r"[0-9a-f]{64}")
_OUTCOMES = tuple(name for name in LAUNCH_OUTCOMES if name not in ("contended", "interrupted", "refused"))
"""The outcomes that count as evidence. A contended, interrupted or refused launch proves nothing."""
Item = TypeVar("Item")


def all_of(folder: Path) -> list[Evidence]:
    """Read every file in a folder, in the order of names. Raise EvidenceError for the first that is wrong."""
    return [read(path) for path in sorted(folder.glob("*.json"))]


def read(path: Path) -> Evidence:
    """Read a file. Raise EvidenceError, in one sentence, if it is malformed or claims what its cases do not prove."""
    evidence = _parsed(path)
    reason = next(_wrong(evidence, path), "")
    if reason:
        raise EvidenceError(f"{path}: {reason}")
    return evidence


def read_or_error(path: Path) -> Evidence | EvidenceError:
    """Read a file, or return the error that says what is wrong with it."""
    try:
        return read(path)
    except EvidenceError as error:
        return error


def _parsed(path: Path) -> Evidence:
    try:
        if path.stat().st_size > LARGEST:
            raise EvidenceError(f"{path}: it is larger than {LARGEST // 2**20} MiB, and no run writes so much")
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise EvidenceError(f"{path} cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise EvidenceError(f"{path}: it is not JSON: {str(error) or type(error).__name__}") from None
    try:
        return _evidence(document)
    except _WrongError as error:
        raise EvidenceError(f"{path}: {error}") from None


class _WrongError(Exception):
    """Raised if something in a file is not as expected. The message says what and where."""


def _evidence(document: Any) -> Evidence:
    if not isinstance(document, dict):
        raise _WrongError("expected an object with a schema, a machine, cases and rows")
    if document.get("schema") != SCHEMA:
        text = f"its schema is {document.get('schema')!r}, and this version reads {SCHEMA}"
        raise _WrongError(f"{text}: make it again with ipexperf evidence")
    _keys(document, KEYS, "the file")
    if document["digest"] != records.digest(document):
        raise _WrongError("its digest does not match its content: it was changed after it was written")
    evidence = Evidence(
        device=_of(document, "device", str, "the file"),
        made=_of(document, "made", dict, "the file"),
        hardware=_hardware(_of(document, "hardware", dict, "the file")),
        software=_of(document, "software", dict, "the file"),
        variables=_texts(_of(document, "variables", dict, "the file"), "variables"),
        cases=tuple(
            _case(value, f"case {number}") for number, value in enumerate(_of(document, "cases", list, "the file"), 1)
        ),
        rows=tuple(
            _row(value, f"row {number}") for number, value in enumerate(_of(document, "rows", list, "the file"), 1)
        ),
    )
    if document["machine"] != evidence.machine:
        raise _WrongError(f"its machine is {document['machine']!r}, and its hardware is called {evidence.machine}")
    return evidence


def _keys(document: Mapping[str, Any], needed: tuple[str, ...], where: str, optional: tuple[str, ...] = ()) -> None:
    if missing := [name for name in needed if name not in document]:
        raise _WrongError(f"{where} has no {missing[0]}")
    if unknown := [name for name in document if name not in (*needed, *optional)]:
        raise _WrongError(f"{where} has an unknown key {unknown[0]!r}")


def _of(document: Mapping[str, Any], name: str, expected: type[Item], where: str) -> Item:
    value = document.get(name)
    if not isinstance(value, expected) or (expected is int and isinstance(value, bool)):
        kinds = {str: "a text", dict: "an object", list: "a list", int: "a whole number", bool: "true or false"}
        raise _WrongError(f"{name} of {where} should be {kinds[expected]}, and is {json.dumps(value)[:60]}")
    return value


def _texts(document: Mapping[Any, Any], where: str) -> dict[str, str]:
    return {name: _of(document, name, str, where) for name in document}


def _hardware(document: dict[str, Any]) -> dict[str, Any]:
    _of(document, "cpu", str, "hardware")
    _of(document, "cores", int, "hardware")
    if not all(isinstance(flag, str) for flag in _of(document, "isa", list, "hardware")):
        raise _WrongError("isa of hardware should be a list of texts")
    accelerator = document.get("accelerator")
    if accelerator is not None:
        for name in ("name", "properties"):
            _of(_of(document, "accelerator", dict, "hardware"), name, str, "the accelerator")
    return document


def _case(document: Any, where: str) -> CaseRecord:
    if not isinstance(document, dict):
        raise _WrongError(f"{where} should be an object")
    needed = ("id", "uid", "case", "outcome", "emulated", "proof", "accuracy", "metrics", "fingerprint")
    _keys(document, needed, where, ("reason", "busy", "speed", "log"))
    case = _axes(_of(document, "case", dict, where), where)
    where = f"{where}, {case.id}"
    if (document["id"], document["uid"]) != (case.id, case.uid):
        raise _WrongError(f"{where}: its id or uid is that of another case")
    if document["outcome"] not in _OUTCOMES:
        raise _WrongError(f"{where}: its outcome {document['outcome']!r} is none of {', '.join(_OUTCOMES)}")
    fingerprint = document["fingerprint"]
    if fingerprint is not None and not (isinstance(fingerprint, str) and _DIGEST.fullmatch(fingerprint)):
        raise _WrongError(f"{where}: its fingerprint is no digest of 64 hexadecimal digits")
    return CaseRecord(
        case,
        document["outcome"],
        _of({"reason": "", **document}, "reason", str, where),
        _of(document, "emulated", bool, where),
        _checks(document, "proof", where),
        _checks(document, "accuracy", where),
        _metrics(_of(document, "metrics", dict, where), where),
        fingerprint,
        _of({"busy": "", **document}, "busy", str, where),
        _speed(document["speed"], where) if "speed" in document else None,
        tuple(str(line) for line in _of({"log": [], **document}, "log", list, where)),
    )


def _axes(document: dict[str, Any], where: str) -> Case:
    needed = (*AXES, "batch", "size", "version", "data")
    _keys(document, needed, f"the case of {where}", ("knobs",))
    for name in needed:
        _of(document, name, int if name in ("batch", "size", "version") else str, f"the case of {where}")
    _texts(_of({"knobs": {}, **document}, "knobs", dict, where), f"the knobs of {where}")
    return Case.from_json(document)


def _checks(document: Mapping[str, Any], kind: str, where: str) -> tuple[Check, ...]:
    checks = []
    for check in _of(document, kind, list, where):
        if not isinstance(check, dict):
            raise _WrongError(f"{where}: a check of its {kind} should be an object")
        _keys(check, ("name", "ok", "found", "expected"), f"a check of {where}")
        for name in ("name", "found", "expected"):
            _of(check, name, str, f"a check of {where}")
        checks.append(
            Check(check["name"], _of(check, "ok", bool, f"a check of {where}"), check["found"], check["expected"])
        )
    return tuple(checks)


def _metrics(document: Mapping[str, Any], where: str) -> dict[str, float]:
    for name, value in document.items():
        if name not in METRICS or not _is_number(value):
            raise _WrongError(f"{where}: its metric {name!r} is unknown, or no number")
    return {name: float(value) for name, value in document.items()}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _speed(document: Any, where: str) -> Speed:
    if not isinstance(document, dict) or not all(_is_number(document.get(name)) for name in ("ratio", "lo", "hi")):
        raise _WrongError(f"{where}: its speed should be a ratio with its interval")
    _keys(document, ("of", "ratio", "lo", "hi"), f"the speed of {where}")
    if not 0 < document["lo"] <= document["ratio"] <= document["hi"]:
        raise _WrongError(f"{where}: the interval of its speed does not contain the ratio")
    return Speed(_of(document, "of", str, where), document["ratio"], document["lo"], document["hi"])


def _row(document: Any, where: str) -> RowRecord:
    if not isinstance(document, dict):
        raise _WrongError(f"{where} should be an object")
    named_values = {name: value for name, value in document.items() if name not in ("kind", "state", "case", "why")}
    subject = tuple(_texts(named_values, where).items())
    if document.get("kind") not in KINDS:
        raise _WrongError(f"{where}: its kind {document.get('kind')!r} is none of {', '.join(KINDS)}")
    if document.get("state") not in STATES:
        raise _WrongError(f"{where}: its state {document.get('state')!r} is none of {', '.join(STATES)}")
    case, why = (_of({name: "", **document}, name, str, where) for name in ("case", "why"))
    return RowRecord(Row(document["kind"], subject), document["state"], case, why)


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
