"""Read and check files of evidence. Whatever a file claims, its own cases must hold."""

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
from ipexperf.ledger import NETWORKS, records
from ipexperf.ledger.records import KEYS, OK, SCHEMA, STATES, CaseRecord, Evidence, RowRecord, Speed
from ipexperf.plan import features, knobs
from ipexperf.plan.features import KINDS, Row
from ipexperf.result import LAUNCH_OUTCOMES, METRICS, Check

FOLDER = Path("docs") / "evidence"
"""The folder of the files, from the root of a checkout."""
LARGEST = 16 * 2**20
"""Bytes of a file that is still read."""
_DIGEST = re.compile(r"[0-9a-f]{64}")
_OUTCOMES = tuple(name for name in LAUNCH_OUTCOMES if name not in ("contended", "interrupted", "refused"))
"""A launch that was contended, interrupted or refused is evidence of nothing."""
Item = TypeVar("Item")


def all_of(folder: Path) -> list[Evidence]:
    """The evidence of every file in a folder, by name. Raise EvidenceError for the first that is wrong."""
    return [read(path) for path in sorted(folder.glob("*.json"))]


def read(path: Path) -> Evidence:
    """The evidence of a file that claims nothing beyond what it holds. Else raise EvidenceError, in one sentence."""
    evidence = _parsed(path)
    reason = next(_wrong(evidence, path), "")
    if reason:
        raise EvidenceError(f"{path}: {reason}")
    return evidence


def answer(path: Path) -> Evidence | EvidenceError:
    """The evidence of a file, or what is wrong with it."""
    try:
        return read(path)
    except EvidenceError as error:
        return error


def _parsed(path: Path) -> Evidence:
    try:
        if path.stat().st_size > LARGEST:
            raise EvidenceError(f"{path}: it is larger than {LARGEST // 2**20} MiB, and no run writes so much")
        whole = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise EvidenceError(f"{path} cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise EvidenceError(f"{path}: it is not JSON: {str(error) or type(error).__name__}") from None
    try:
        return _evidence(whole)
    except _WrongError as error:
        raise EvidenceError(f"{path}: {error}") from None


class _WrongError(Exception):
    """Something in a file is not as expected. The message says what and where."""


def _evidence(whole: Any) -> Evidence:
    if not isinstance(whole, dict):
        raise _WrongError("expected an object with a schema, a machine, cases and rows")
    if whole.get("schema") != SCHEMA:
        text = f"its schema is {whole.get('schema')!r}, and this version reads {SCHEMA}"
        raise _WrongError(f"{text}: make it again with ipexperf evidence")
    _keys(whole, KEYS, "the file")
    if whole["digest"] != records.digest(whole):
        raise _WrongError("its digest does not match its content: it was changed after it was written")
    evidence = Evidence(
        device=_of(whole, "device", str, "the file"),
        made=_of(whole, "made", dict, "the file"),
        hardware=_hardware(_of(whole, "hardware", dict, "the file")),
        software=_of(whole, "software", dict, "the file"),
        variables=_texts(_of(whole, "variables", dict, "the file"), "variables"),
        cases=tuple(
            _case(one, f"case {number}") for number, one in enumerate(_of(whole, "cases", list, "the file"), 1)
        ),
        rows=tuple(_row(one, f"row {number}") for number, one in enumerate(_of(whole, "rows", list, "the file"), 1)),
    )
    if whole["machine"] != evidence.machine:
        raise _WrongError(f"its machine is {whole['machine']!r}, and its hardware is called {evidence.machine}")
    return evidence


def _keys(document: Mapping[str, Any], needed: tuple[str, ...], where: str, more: tuple[str, ...] = ()) -> None:
    if missing := [name for name in needed if name not in document]:
        raise _WrongError(f"{where} has no {missing[0]}")
    if unknown := [name for name in document if name not in (*needed, *more)]:
        raise _WrongError(f"{where} has an unknown key {unknown[0]!r}")


def _of(document: Mapping[str, Any], name: str, kind: type[Item], where: str) -> Item:
    value = document.get(name)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        kinds = {str: "a text", dict: "an object", list: "a list", int: "a whole number", bool: "true or false"}
        raise _WrongError(f"{name} of {where} should be {kinds[kind]}, and is {json.dumps(value)[:60]}")
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


def _case(one: Any, where: str) -> CaseRecord:
    if not isinstance(one, dict):
        raise _WrongError(f"{where} should be an object")
    needed = ("id", "uid", "case", "outcome", "emulated", "proof", "accuracy", "metrics", "fingerprint")
    _keys(one, needed, where, ("reason", "busy", "speed", "log"))
    case = _axes(_of(one, "case", dict, where), where)
    where = f"{where}, {case.id}"
    if (one["id"], one["uid"]) != (case.id, case.uid):
        raise _WrongError(f"{where}: its id or uid is that of another case")
    if one["outcome"] not in _OUTCOMES:
        raise _WrongError(f"{where}: its outcome {one['outcome']!r} is none of {', '.join(_OUTCOMES)}")
    fingerprint = one["fingerprint"]
    if fingerprint is not None and not (isinstance(fingerprint, str) and _DIGEST.fullmatch(fingerprint)):
        raise _WrongError(f"{where}: its fingerprint is no digest of 64 hexadecimal digits")
    return CaseRecord(
        case,
        one["outcome"],
        _of({"reason": "", **one}, "reason", str, where),
        _of(one, "emulated", bool, where),
        _checks(one, "proof", where),
        _checks(one, "accuracy", where),
        _metrics(_of(one, "metrics", dict, where), where),
        fingerprint,
        _of({"busy": "", **one}, "busy", str, where),
        _speed(one["speed"], where) if "speed" in one else None,
        tuple(str(line) for line in _of({"log": [], **one}, "log", list, where)),
    )


def _axes(document: dict[str, Any], where: str) -> Case:
    needed = (*AXES, "batch", "size", "version", "data")
    _keys(document, needed, f"the case of {where}", ("knobs",))
    for name in needed:
        _of(document, name, int if name in ("batch", "size", "version") else str, f"the case of {where}")
    _texts(_of({"knobs": {}, **document}, "knobs", dict, where), f"the knobs of {where}")
    return Case.from_json(document)


def _checks(one: Mapping[str, Any], kind: str, where: str) -> tuple[Check, ...]:
    checks = []
    for check in _of(one, kind, list, where):
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


def _row(one: Any, where: str) -> RowRecord:
    if not isinstance(one, dict):
        raise _WrongError(f"{where} should be an object")
    rest = {name: value for name, value in one.items() if name not in ("kind", "state", "case", "why")}
    subject = tuple(_texts(rest, where).items())
    if one.get("kind") not in KINDS:
        raise _WrongError(f"{where}: its kind {one.get('kind')!r} is none of {', '.join(KINDS)}")
    if one.get("state") not in STATES:
        raise _WrongError(f"{where}: its state {one.get('state')!r} is none of {', '.join(STATES)}")
    case, why = (_of({name: "", **one}, name, str, where) for name in ("case", "why"))
    return RowRecord(Row(one["kind"], subject), one["state"], case, why)


def _wrong(evidence: Evidence, path: Path) -> Iterator[str]:
    """What the file claims and does not hold."""
    if path.stem != evidence.machine:
        yield f"it should be called {evidence.machine}.json, after its hardware"
    if evidence.device not in registry.devices.names():
        yield f"its device {evidence.device!r} is none of {', '.join(registry.devices.names())}"
        return
    accelerator = evidence.hardware.get("accelerator") or {}
    device = registry.devices.get(evidence.device)
    if device.accelerator and accelerator.get("name") != device.name and any(one.sound for one in evidence.cases):
        yield f"it is of the device {device.name}, and its hardware has none"
    if limit := records.limited(evidence.variables):
        yield f"{limit} kept libraries from using the instructions of its hardware"
    yield from _wrong_cases(evidence)
    yield from _wrong_rows(evidence)


def _wrong_cases(evidence: Evidence) -> Iterator[str]:
    seen = set()
    for one in evidence.cases:
        case = one.case
        if case.uid in seen:
            yield f"{case.id} is there twice"
        seen.add(case.uid)
        if case.device != evidence.device:
            yield f"{case.id} ran on {case.device}, and the file is of {evidence.device}"
        if case.dtype not in DTYPES:
            yield f"{case.id}: there is no dtype {case.dtype}"
            continue
        emulated = precision.emulated(case.device, case.dtype, evidence.facts.cpu_flags)
        if one.outcome == OK and one.emulated != emulated:
            has = "only emulates" if emulated else "has instructions for"
            yield f"{case.id}: its hardware {has} {case.dtype}, and the case says otherwise"
    for one in evidence.cases:
        if one.speed is not None and one.speed.of not in seen:
            yield f"{one.case.id}: its speed is compared with a case that is not in the file"


def _wrong_rows(evidence: Evidence) -> Iterator[str]:
    loading.load([str(NETWORKS)])
    every = set(features.every(evidence.device))
    cases = {one.case.uid: one for one in evidence.cases}
    seen = set()
    for one in evidence.rows:
        row = one.row
        if row not in every:
            yield f"there is no row {row}"
            continue
        if row in seen:
            yield f"the row {row} is there twice"
        seen.add(row)
        if one.state == "held":
            yield from _unproven(one, cases.get(one.case), evidence)
        elif not one.why:
            yield f"the row {row} is {one.state} without a reason"


def _unproven(one: RowRecord, case: CaseRecord | None, evidence: Evidence) -> Iterator[str]:
    """Why a row that is said to hold does not."""
    row = one.row
    if reason := features.not_here(row, evidence.device, evidence.facts):
        yield f"the row {row} cannot hold on this hardware: {reason}"
    elif case is None:
        yield f"the row {row} holds by a case that is not in the file"
    elif not _shown(row, case, evidence):
        yield f"the row {row} holds by {case.case.id}, which does not show it"
    elif not records.holds(row, case):
        yield f"the row {row} holds without its proof: {case.case.id}: {case.why or 'its proof has no check of this'}"


def _shown(row: Row, case: CaseRecord, evidence: Evidence) -> bool:
    """Whether the case shows the row. One whose leaves are gone, or whose settings are none, shows nothing."""
    known: Mapping[str, Callable[[], tuple[str, ...]]] = {
        "mode": registry.modes.names,
        "stack": registry.stacks.names,
        "model": registry.models.names,
    }
    if any(getattr(case.case, name) not in names() for name, names in known.items()):
        return False
    own = knobs.of(features.cell_of(case.case))
    if any(name in own and own[name].wrong(value) for name, value in case.case.knobs):
        return False
    return features.shows(row, case.case, evidence.facts)
