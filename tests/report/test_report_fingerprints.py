"""Fingerprints in a line."""

from typing import Any

from ipexperf.proof import fingerprint_lines

FINGERPRINT: dict[str, Any] = {
    "version": 1,
    "digest": "0123456789abcdef",
    "structure": {
        "primitives": [
            {"primitive": "convolution", "implementation": "brg_conv_fwd:avx2", "calls": 17},
            {"primitive": "convolution", "implementation": "brg_conv_fwd:avx2", "calls": 3},
            {"primitive": "reorder", "implementation": "jit:uni", "calls": 2},
        ],
        "operators": [{"operator": "aten::linear", "calls": 1}],
        "library": {"created": {}, "unparsed": 1},
        "flops": 1_820_000_000,
    },
    "unstable": [],
    "missing": {},
    "unparsed": ["onednn_verbose,v9"],
    "seconds": 1.5,
}


def test_a_fingerprint_is_one_line() -> None:
    assert fingerprint_lines.in_one_line(FINGERPRINT) == (
        "0123456789ab, 20 convolution (brg_conv_fwd:avx2), 2 reorder (jit:uni), 1 operator call, 1.82 GFLOP a step, "
        "1 line of oneDNN's log could not be read, looked at for 1.50 s"
    )
    taken = {"beside": {"memory": {"allocations": 12, "allocated": 2**22, "peak": 2**21}}}
    assert "12 allocations, at most 2.00 MiB at once" in fingerprint_lines.in_one_line({**FINGERPRINT, **taken})
    assert fingerprint_lines.in_one_line(None) == "no fingerprint"
    assert fingerprint_lines.in_one_line({**FINGERPRINT, "unstable": ["operators"]}).startswith(
        "unstable: operators differed"
    )
    missing = fingerprint_lines.in_one_line({**FINGERPRINT, "missing": {"operators": "no profiler"}})
    assert missing == "not all could be captured: operators: no profiler"
