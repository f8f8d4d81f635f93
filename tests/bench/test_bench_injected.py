"""Each thing that makes a step slower in secret is named by the fingerprint: that, and nothing else."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest
from bench_cases import alone

from ipexperf.judge import structure

pytest.importorskip("torch")

IPEX = importlib.util.find_spec("intel_extension_for_pytorch") is not None
Found = dict[str, dict[str, Any]]


def fingerprints(stack: str, **variables: str) -> Found:
    found: Found = alone("injected.py", arguments=(stack,), **variables)
    for name, one in found.items():
        assert one["unstable"] == [], name
        assert one["missing"] == {}, name
        assert one["unparsed"] == [], name
    return found


@pytest.fixture(scope="module")
def stock() -> Found:
    return fingerprints("stock")


@pytest.fixture(scope="module")
def ipex() -> Found:
    if not IPEX:
        pytest.skip("needs IPEX, in a process of its own")
    return fingerprints("ipex")


def said(old: dict[str, Any], new: dict[str, Any]) -> str:
    return "\n".join(structure.diff(old, new).lines())
