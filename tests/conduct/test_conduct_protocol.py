"""Replies of workers are parsed. Any other line is refused in one sentence."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipexperf.conduct import protocol

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)
WARM = {"ok": True, "first_step": 0.1, "warm_time": 0.2, "steps": 4, "steady": 1.0, "step": 0.1, "block": 1}


def line(document: Any) -> bytes:
    return json.dumps(document).encode()


def test_replies_and_progress_are_read() -> None:
    assert protocol.parse(line(WARM), "warm") == WARM
    assert protocol.parse(b'{"say": "importing"}', "warm") == {"say": "importing"}
    failed = {"ok": False, "outcome": "out_of_memory", "reason": "no room"}
    assert protocol.parse(line(failed), "warm") == failed
    assert protocol.parse(b'{"ok": true, "told": "by fbgemm"}', "quantise")["told"] == "by fbgemm"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (b"[]", "is no JSON object"),
        (b"1", "is no JSON object"),
        (b"{}", "does not say whether all is ok"),
        (b"{", "is no JSON"),
        (b"\xff", "is no JSON"),
        (b"[" * 100_000, "is no JSON"),
        (b'{"ok": 1}', "does not say whether all is ok"),
        (b'{"ok": true}', "has no first_step"),
        (line({**WARM, "block": 0}), "has a wrong block"),
        (line({**WARM, "block": "1"}), "has a wrong block"),
        (line({**WARM, "warm_time": True}), "has a wrong warm_time"),
        (b'{"ok": true, "first_step": NaN}', "NaN is no number"),
        (b'{"ok": false}', "has no outcome"),
        (b'{"ok": false, "outcome": "tired", "reason": ""}', "has a wrong outcome"),
        (b'{"ok": false, "outcome": [], "reason": ""}', "has a wrong outcome"),
        (b'{"say": 1}', "has a wrong say"),
    ],
)
def test_any_other_line_is_refused(text: bytes, told: str) -> None:
    with pytest.raises(protocol.MalformedError) as raised:
        protocol.parse(text, "warm")
    assert told in str(raised.value)
    assert len(str(raised.value)) < 300


@pytest.mark.parametrize(
    ("request_", "name", "value"),
    [("sample", "samples", [[1, 2]]), ("sample", "samples", [[1, 2, None]]), ("proof", "checks", [{"name": "dtype"}]),
     ("sample", "joules", "many"), ("warm", "energy_seconds", None), ("warm", "no_energy", 0),
     ("metrics", "metrics", {"a": "b"}), ("accuracy", "checks", {}), ("fingerprint", "fingerprint", [1])],
)  # fmt: skip
def test_a_field_of_a_wrong_type_is_refused(request_: str, name: str, value: object) -> None:
    fine: dict[str, Any] = {"ok": True, "samples": [[1, 2, 0.0]], "block": 1, "checks": [], "metrics": {}, "notes": []}
    fine |= {**WARM, "emulated": False, "fingerprint": None}
    protocol.parse(line(fine), request_)
    with pytest.raises(protocol.MalformedError, match=f"has a wrong {name}"):
        protocol.parse(line({**fine, name: value}), request_)


@given(JSON, st.sampled_from([protocol.GREETING, *protocol.FIELDS, "quantise"]))
def test_any_line_is_parsed_or_refused(document: Any, request_: str) -> None:
    try:
        reply = protocol.parse(json.dumps(document).encode(), request_)
    except protocol.MalformedError:
        return
    assert isinstance(reply, dict)
    assert {"say", "ok"} & set(reply)
