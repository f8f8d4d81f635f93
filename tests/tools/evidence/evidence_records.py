"""Evidence of a machine that was never measured: its hardware, cases with a proof, and rows."""

from __future__ import annotations

import dataclasses
from typing import Any

from ipexperf.case import Case
from ipexperf.result import Check
from ipexperf.tools.evidence import features, records
from ipexperf.tools.evidence.features import Row
from ipexperf.tools.evidence.records import CaseRecord, Evidence

FLAGS = ("avx2", "avx512_bf16", "avx512_vnni", "avx512f")
HARDWARE = {"cpu": "Some(R) CPU 9000 @ 2.00GHz", "isa": list(FLAGS), "cores": 4, "memory": 2**34, "accelerator": None}
BF16 = Case("resnet18", "cpu", "bf16", "infer", "stock", 32, 32, data="digits")
FP32 = dataclasses.replace(BF16, dtype="fp32")
INT8 = dataclasses.replace(BF16, dtype="int8")
HELD = Check("dtype", True, "as said", "as said")
USED = Check("instructions", True, "AVX-512 BF16 in 3 of 3 kernels", "AVX-512 BF16 in at least one")
UNTOLD = Check("instructions", True, "nothing was told", "AVX-512 VNNI where it is reported")
WRONG = Check("dtype", False, "float32", "bfloat16")


def proven(case: Case, *checks: Check, **more: Any) -> CaseRecord:
    """The record of a case that ran well, with these checks."""
    return CaseRecord(case, "ok", proof=(HELD, *checks), fingerprint="0" * 64, **more)


def row(kind: str, **subject: str) -> Row:
    return Row(kind, tuple(subject.items()))  # type: ignore[arg-type]


def evidence(*cases: CaseRecord, **more: Any) -> Evidence:
    """The evidence of these cases on the machine, every row resolved as the command does it."""
    chosen = cases or (proven(BF16, USED), proven(FP32))
    hardware = more.pop("hardware", HARDWARE)
    why, facts = "the minutes were over before", records.facts(hardware)
    rows = [records.resolved(row, chosen, {}, facts, why) for row in features.every("cpu")]
    made = {"at": "2026-11-24", "ipexperf": "0.1.0", "commit": None, "minutes": 20, "seconds": 7}
    software = {"python": "3.11.7", "torch": "2.8.0"}
    return Evidence(**{"device": "cpu", "made": made, "hardware": hardware, "software": software, "variables": {},
                       "cases": tuple(chosen), "rows": tuple(rows), **more})  # fmt: skip
