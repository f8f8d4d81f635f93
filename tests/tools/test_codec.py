"""Records as JSON. Documents that do not fit are refused."""

import json
from dataclasses import asdict
from typing import Any

import pytest

from ipexperf.case import NetworkCase
from ipexperf.result import Check, Launch, Sample
from ipexperf.tools import codec

CASE = NetworkCase("tiny", "fake", "fp32", "spin", "plain", 4, 32, data="digits", knobs=(("level", "O0"),))
LAUNCH = Launch(
    0,
    "ok",
    samples=(Sample(0.5, 0.25, 0.0), Sample(1, 1, 0)),
    metrics={"step_time": 0.5},
    proof=(Check("device", True, "fake", "fake"),),
    notes=("a note",),
    fingerprint={"digest": "ab", "kernels": [["add", 2]]},
)


@pytest.mark.parametrize("record", [CASE, LAUNCH], ids=lambda one: type(one).__name__)
def test_a_record_survives_encoding_and_decoding(record: Any) -> None:
    read = codec.record(type(record), json.loads(json.dumps(asdict(record))))
    assert read == record
    assert type(read) is type(record)


@pytest.mark.parametrize("document", [None, [], 1, {}, {**asdict(CASE), "batch": "4"}, {**asdict(CASE), "more": 1}])
def test_an_invalid_document_is_refused(document: Any) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - its words are those of several libraries
        codec.record(NetworkCase, document)
