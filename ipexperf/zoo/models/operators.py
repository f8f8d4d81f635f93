"""The operators of the large decoders, each a model of its own: `llama_1b.gate_up` is all gates and ups of `llama_1b`.

A step runs the operator of every layer once, as a step of the decoder does. So the times of a decoder's operators are
parts of its own, and a decoder that became slower can be followed to its operator.
"""

from __future__ import annotations

import functools
from typing import Any

from ipexperf.ext import model
from ipexperf.zoo.models._shape import Shape
from ipexperf.zoo.models.decoders import POSITIONS, SHAPED, SHAPES

PATHS: dict[str, tuple[str, ...]] = {
    "query": ("attention.query",),
    "key_value": ("attention.key", "attention.value"),
    "attention": (),
    "out": ("attention.out",),
    "gate_up": ("gate", "up"),
    "down": ("down",),
    "norm": ("norm", "last_norm"),
    "head": ("head",),
}
"""The paths of each operator's modules in the decoder. Attention is a function, not a module."""
WITHOUT_LINEAR = ("attention", "norm")


def _operators(shape: Shape, paths: tuple[str, ...]) -> Any:
    from ipexperf.zoo.models import _operators

    return _operators.Operators(shape, paths) if paths else _operators.Attentions(shape)


for decoder, shape in SHAPES.items():
    for name, paths in PATHS.items():
        declared = {**SHAPED, "task": "operators", "data": "activations", "most": POSITIONS, "operator_of": decoder}
        build = functools.partial(_operators, shape, paths)
        model(f"{decoder}.{name}", linear=name not in WITHOUT_LINEAR, **declared)(build)
