"""Replies of workers are parsed. Any other line is refused in one sentence."""

import gc

import pytest

from ipexperf.conduct import protocol


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (b"[]", "is neither a reply nor a message of progress"),
        (b"{}", "is neither a reply nor a message of progress"),
        (b"{", "is no JSON"),
        (b"\xff", "is no JSON"),
        (b"[" * 100_000, "is no JSON"),
        (b'{"ok": true}', "has wrong samples"),
        (b'{"ok": true, "samples": ["many"]}', "has wrong samples"),
        (b'{"ok": true, "samples": [[1, 2]]}', "has wrong samples"),
        (b'{"ok": true, "samples": [[1, 2, null]]}', "has wrong samples"),
    ],
)
def test_any_other_line_is_refused(text: bytes, told: str) -> None:
    gc.collect()  # what is left of other tests could not be finalised in the depth of a recursion
    with pytest.raises(protocol.MalformedError) as raised:
        protocol.parse(text, "sample")
    assert told in str(raised.value)
    assert len(str(raised.value)) < 300
