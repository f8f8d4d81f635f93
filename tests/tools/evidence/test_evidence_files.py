"""A file of evidence is read back as it was written, and refused where it claims what it does not hold."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from evidence_records import BF16, FP32, HARDWARE, INT8, UNTOLD, USED, WRONG, evidence, proven

from ipexperf.errors import EvidenceError
from ipexperf.tools.evidence import records
from ipexperf.tools.evidence.records import CaseRecord, Evidence, Speed

Edit = Callable[[dict[str, Any]], object]


def write(folder: Path, one: Evidence) -> Path:
    path = folder / f"{one.machine}.json"
    path.write_text(records.text(one))
    return path


def edited(folder: Path, edit: Edit, one: Evidence | None = None) -> Path:
    """The file after an edit by somebody who also made its digest anew."""
    path = write(folder, one or evidence())
    whole = json.loads(path.read_text())
    edit(whole)
    whole["digest"] = records.digest(whole)
    path.write_text(json.dumps(whole))
    return path


def refusal(path: Path) -> str:
    with pytest.raises(EvidenceError) as error:
        records.read(path)
    text = str(error.value)
    assert text.startswith(str(path))
    assert "\n" not in text
    return text.removeprefix(f"{path}")


def the_row(whole: dict[str, Any], kind: str, **subject: str) -> dict[str, Any]:
    return next(one for one in whole["rows"] if {"kind": kind, **subject}.items() <= one.items())


def test_a_file_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    speed = Speed(FP32.uid, 1.5, 1.25, 1.75)
    failed = CaseRecord(INT8, "crashed", "signal 9", log=("last words",))
    whole = evidence(proven(BF16, USED, speed=speed, busy="others"), proven(FP32, metrics={"fidelity": 1e-6}), failed)
    assert records.read(write(tmp_path, whole)) == whole


def test_each_case_and_row_has_a_line(tmp_path: Path) -> None:
    """A reviewer of a second file of the same machine sees what changed."""
    whole = evidence()
    text = write(tmp_path, whole).read_text()
    assert sum(line.startswith("  {") for line in text.splitlines()) == len(whole.cases) + len(whole.rows)


def claim(kind: str, case: str = BF16.uid, **subject: str) -> Edit:
    """An edit that claims that a row holds by a case."""

    def edit(whole: dict[str, Any]) -> None:
        one = the_row(whole, kind, **subject)
        one.update(state="held", case=case)
        one.pop("why", None)

    return edit


def set_in(*path: str | int, to: Any) -> Edit:
    def edit(whole: Any) -> None:
        for name in path[:-1]:
            whole = whole[name]
        whole[path[-1]] = to

    return edit


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (claim("instructions", dtype="bf16", instructions="AMX"), "AMX for bf16 cannot hold on this hardware: this"),
        (claim("mode", mode="infer", dtype="int8", stack="stock"), "bf16-infer-stock, which does not show it"),
        (claim("mode", "nobody", mode="infer", dtype="int8", stack="stock"), "holds by a case that is not in the file"),
        (set_in("rows", 0, "dtype", to="bf8"), "there is no row AMX for bf8"),
        (set_in("rows", 0, "kind", to="wish"), "'wish' is none of"),
        (set_in("rows", 0, "state", to="maybe"), "'maybe' is none of"),
        (lambda whole: whole["rows"].append(whole["rows"][0]), "AMX for bf16 is there twice"),
        (set_in("rows", 0, "why", to=""), "AMX for bf16 is unreached without a reason"),
        (set_in("schema", to=0), "its schema is 0, and this version reads 1: make it again"),
        (set_in("machine", to="another-cpu"), "its machine is 'another-cpu', and its hardware is called"),
        (lambda whole: whole.pop("software"), "it is no file of evidence: KeyError('software')"),
        (set_in("cases", 0, "case", "batch", to=64), "its id or uid is that of another case"),
        (set_in("cases", 0, "outcome", to="fine"), "its outcome 'fine' is none of ok, error"),
        (set_in("cases", 0, "emulated", to=True), "its hardware has instructions for bf16, and the case says"),
        (set_in("cases", 0, "metrics", to={"beauty": 1}), "its metric 'beauty' is unknown"),
        (set_in("cases", 0, "speed", to={"of": FP32.uid, "ratio": 3, "lo": 1, "hi": 2}), "does not contain the ratio"),
        (set_in("cases", 0, "speed", to={"of": "?", "ratio": 1, "lo": 1, "hi": 2}), "a case that is not in the file"),
        (set_in("cases", 0, "proof", 0, "ok", to="yes"), "'yes' is no bool"),
        (lambda whole: whole["cases"].append(whole["cases"][0]), "is there twice"),
        (set_in("cases", to=[[]]), "it is no file of evidence: "),
    ],
)  # fmt: skip
def test_a_claim_that_the_file_does_not_hold_is_refused_in_a_sentence(tmp_path: Path, edit: Edit, reason: str) -> None:
    """Also where the digest was made anew: it is no signature."""
    assert reason in refusal(edited(tmp_path, edit))


def test_a_row_without_its_proof_is_refused(tmp_path: Path) -> None:
    """A check that failed, no check at all, a case that crashed, and instructions that no library reported."""
    mode = {"mode": "infer", "dtype": "bf16", "stack": "stock"}
    for case in (proven(BF16, WRONG), CaseRecord(BF16, "ok"), CaseRecord(BF16, "crashed", "signal 9")):
        path = edited(tmp_path, claim("mode", **mode), evidence(case))
        assert "infer bf16 stock holds without its proof: resnet18-cpu-bf16-infer-stock: " in refusal(path)
    untold = edited(
        tmp_path,
        claim("instructions", INT8.uid, dtype="int8", instructions="AVX-512 VNNI"),
        evidence(proven(INT8, UNTOLD)),
    )
    assert "AVX-512 VNNI for int8 holds without its proof" in refusal(untold)


def test_a_changed_file_has_another_digest(tmp_path: Path) -> None:
    path = write(tmp_path, evidence())
    path.write_text(path.read_text().replace('"cores": 4', '"cores": 8'))
    assert "its digest does not match its content" in refusal(path)


def test_a_limited_processor_shows_nothing_of_itself(tmp_path: Path) -> None:
    """Its bf16 may be emulated although its flags say otherwise."""
    path = write(tmp_path, evidence(variables={"ATEN_CPU_CAPABILITY": "avx2"}))
    assert "ATEN_CPU_CAPABILITY=avx2 kept libraries from using the instructions of its hardware" in refusal(path)


def test_a_file_is_called_as_its_machine(tmp_path: Path) -> None:
    path = write(tmp_path, evidence())
    assert "it should be called some-9000-avx512-bf16-cpu.json" in refusal(path.rename(tmp_path / "mine.json"))


def test_an_accelerator_must_be_in_the_hardware(tmp_path: Path) -> None:
    """And the cases of a file are of its device."""
    on_cpu = evidence(device="cuda")
    assert "its device is cuda, and its hardware has none" in refusal(write(tmp_path, on_cpu))
    card = {**HARDWARE, "accelerator": {"name": "cuda", "properties": "NVIDIA Card 1"}}
    with_card = evidence(device="cuda", hardware=card)
    assert with_card.machine == "some-9000-avx512-bf16-nvidia-card-1-cuda"
    assert "resnet18-cpu-bf16-infer-stock ran on cpu, and the file is of cuda" in refusal(write(tmp_path, with_card))


@pytest.mark.parametrize("text", ["", "[]", "null", '{"schema": 1}', "[" * 100_000, "\udc80"])
def test_what_is_no_file_of_evidence_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "some.json"
    path.write_bytes(text.encode(errors="surrogateescape"))
    assert refusal(path)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    assert " cannot be read: No such file or directory" in refusal(tmp_path / "none.json")
