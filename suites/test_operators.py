"""Operators of decoders, each alone: prefill and decode, on every requested device, dtype and stack."""

import pytest


@pytest.mark.perf(operators=True)
def test_operators(perf):
    perf()
