"""Records as JSON between hosts. Documents that do not fit are refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ipexperf.bench.machine.facts import Facts
from ipexperf.case import Case
from ipexperf.compare.request import GroupRequest
from ipexperf.plan.groups import Group
from ipexperf.plan.options import Options
from ipexperf.result import Check, Launch, Measurement, RoundRecord, Sample, SeatRecord
from ipexperf.tools import codec
from ipexperf.tools.fleet import messages
from ipexperf.tools.fleet.messages import (
    Alive,
    Bye,
    Exited,
    GroupProgress,
    Measure,
    Open,
    Opened,
    ProgressLine,
    Refused,
    Stop,
)

CASE = Case("tiny", "fake", "fp32", "spin", "plain", 4, 32, data="digits", knobs=(("level", "O0"),))
LAUNCH = Launch(
    0,
    "ok",
    samples=(Sample(0.5, 0.25, 0.0), Sample(1, 1, 0)),
    metrics={"step_time": 0.5},
    proof=(Check("device", True, "fake", "fake"),),
    notes=("a note",),
    fingerprint={"digest": "ab", "kernels": [["add", 2]]},
)
MEASURED = Measurement(CASE, (LAUNCH,), {"machine_key": "k", "cores": 2}, "2026-01-01", "2026-01-02", "cut")
SEAT = SeatRecord(CASE, "case", ((0.5, 0.25), (1.0,)), 0)
ROUND = RoundRecord("u", "g", 1, "together", (SEAT, SEAT), "2026-01-01", 2.5, 3, 1)
FACTS = Facts(
    "/bin/python",
    {"torch": "2.8", "ipex": None},
    frozenset({"avx2", "fma"}),
    {"xpu": ""},
    {"xpu": ({"name": "Arc", "float64": False},)},
)
MESSAGES = (
    Open(
        "run",
        Options(model=("a", "b"), cache=Path("/x"), budget=5.0, size="small", sources={"model": "--model"}),
        "old",
    ),
    Measure(3, GroupRequest(Group("g", (CASE,)), 2, True, None, ((CASE, MEASURED),), ((CASE, 4),), False)),
    Measure(4, GroupRequest(Group("g", (CASE,)), 2, False, 0.05, (), (), True)),
    Stop(),
    Bye(),
    Opened(FACTS, {"host": "h"}, "2026-01-01T00:00:00+00:00"),
    ProgressLine("text"),
    Alive(),
    GroupProgress(3, "g", ((CASE, MEASURED),), (ROUND,), True),
    Refused(3, "why"),
    Exited(-9, "log"),
)


@pytest.mark.parametrize("message", MESSAGES, ids=lambda one: type(one).__name__)
def test_every_message_survives_encoding_and_decoding(message: messages.Request | messages.Reply) -> None:
    text = messages.line(message)
    assert "\n" not in text
    read = messages.read(text)
    assert read == message
    assert type(read) is type(message)


def test_the_uid_of_a_case_survives_encoding() -> None:
    assert codec.record(Case, json.loads(json.dumps(codec.plain(CASE)))).uid == CASE.uid


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"is":"unheard of"}',
        '{"is":"ProgressLine"}',
        '{"is":"ProgressLine","text":1}',
        '{"is":"ProgressLine","more":1,"text":"a"}',
        '{"is":"Refused","number":"1","reason":""}',
        '{"is":"GroupProgress","number":1,"group":"g","measurements":[[1]],"rounds":[],"over":true}',
    ],
)
def test_an_invalid_reply_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - its words are those of several libraries
        messages.read(text)


def test_a_value_outside_a_literal_is_refused() -> None:
    document = codec.plain(LAUNCH) | {"outcome": "splendid"}
    with pytest.raises(ValueError, match="splendid"):
        codec.record(Launch, document)
