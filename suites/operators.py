"""The operators of a decoder's layer, each a function: `pytest suites/operators.py`, by its name alone.

A run of networks, `pytest suites/`, does without them.
"""

import pytest

torch = pytest.importorskip("torch")

SHAPES = {"llama_135m": (9, 3, 64, 1536), "llama_1b": (32, 8, 64, 8192)}
"""Heads of queries, heads of keys and values, the width of a head, and the inner width."""
CACHED = 128
"""Tokens that attention sees."""


@pytest.fixture(params=SHAPES)
def shape(request):
    return SHAPES[request.param]


@pytest.fixture(params=["float32", "bfloat16"])
def dtype(request):
    return getattr(torch, request.param)


@pytest.fixture(params=[1, CACHED], ids=["token", "prompt"])
def tokens(request):
    return request.param


def linear(perf, tokens, inputs, outputs, dtype):
    layer = torch.nn.Linear(inputs, outputs, bias=False, dtype=dtype).requires_grad_(False)
    assert perf(layer, torch.randn(tokens, inputs, dtype=dtype)).shape == (tokens, outputs)


def test_query(perf, shape, dtype, tokens):
    heads, _, head, _ = shape
    linear(perf, tokens, heads * head, heads * head, dtype)


def test_gate_up(perf, shape, dtype, tokens):
    heads, _, head, inner = shape
    linear(perf, tokens, heads * head, 2 * inner, dtype)


def test_down(perf, shape, dtype, tokens):
    heads, _, head, inner = shape
    linear(perf, tokens, inner, heads * head, dtype)


def test_attention(perf, shape, dtype, tokens):
    heads, key_heads, head, _ = shape
    query = torch.randn(1, heads, tokens, head, dtype=dtype)
    keys, values = torch.randn(2, 1, key_heads, CACHED, head, dtype=dtype)
    attend = torch.nn.functional.scaled_dot_product_attention
    attended = perf(attend, query, keys, values, is_causal=tokens > 1, enable_gqa=True)
    assert attended.shape == query.shape


def test_norm(perf, shape, dtype, tokens):
    heads, _, head, _ = shape
    width = heads * head
    values, weight = torch.randn(tokens, width, dtype=dtype), torch.ones(width, dtype=dtype)
    assert perf(torch.nn.functional.rms_norm, values, (width,), weight).shape == values.shape
