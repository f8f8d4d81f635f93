"""`ipex.llm.optimize` is refused where it cannot work, and a script says how to use it."""

from __future__ import annotations

import pytest

from ipexperf.bench import registry
from ipexperf.bench.api import Cell, Knob
from ipexperf.bench.machine.facts import Facts

FACTS = Facts("/env/bin/python", {"torch": "2.8.0", "transformers": "4.51.3"})


def knob() -> Knob:
    [found] = [knob for knob in registry.stacks.get("ipex").knobs if knob.name == "llm"]
    return found


@pytest.mark.parametrize(
    ("model", "device", "dtype", "knobs", "reason"),
    [
        ("llama_135m", "cpu", "fp32", {}, None),
        ("qwen_500m", "cpu", "bf16", {}, None),
        ("llama_small", "cpu", "bf16", {"weights": "cast"}, None),
        ("llama_small", "cpu", "bf16", {"weights": "int8"}, None),
        ("llama_small", "cpu", "bf16", {}, "holds weights in bf16: choose --perf-knobs llm=on,weights=cast"),
        ("llama_135m", "cpu", "bf16", {"weights": "autocast"}, "holds weights in bf16"),
        ("gpt_small", "cpu", "fp32", {}, "for decoders that transformers has a class of: it has none of gpt_small"),
        ("llama_135m", "xpu", "fp32", {}, "built for cpu"),
        ("llama_135m", "cpu", "fp32", {"level": "O0", "graph_mode": "on"}, "takes no level and no graph_mode"),
    ],
)
def test_it_is_refused_where_it_cannot_work(
    model: str, device: str, dtype: str, knobs: dict[str, str], reason: str | None
) -> None:
    cell = Cell(model, device, dtype, "decode", "ipex", tuple({"llm": "on", **knobs}.items()))
    found = knob().why_not(cell, "on", FACTS)
    assert (found is None) if reason is None else (reason in str(found))


@pytest.mark.parametrize(
    ("installed", "reason"),
    [
        ("4.51.0", None),
        ("5.23.0", "ipex.llm.optimize needs transformers 4.51, and 5.23.0 is installed in /env/bin/python: measure in"),
        ("4.52.1", "and 4.52.1 is installed"),
        (None, "transformers not installed in /env/bin/python; measure in an environment of its own, such as shipped:"),
    ],
)
def test_it_needs_the_version_of_transformers_that_ipex_knows(installed: str | None, reason: str | None) -> None:
    """IPEX 2.8 only warns of later ones, and fails with an ImportError under version 5."""
    cell = Cell("llama_135m", "cpu", "fp32", "decode", "ipex", (("llm", "on"),))
    found = knob().why_not(cell, "on", Facts("/env/bin/python", {"transformers": installed}))
    assert (found is None) if reason is None else (reason in str(found))


@pytest.mark.parametrize("mode", ["decode_compile", "infer", "train"])
def test_it_is_for_reading_and_decoding_alone(mode: str) -> None:
    assert "it is for prefill, decode" in str(knob().unfit(registry.modes.get(mode)))


def test_serving_says_why_it_has_none() -> None:
    reason = "serve has no knob llm: IPEX's cache has one length for all texts of a batch, and requests differ"
    assert knob().unfit(registry.modes.get("serve")) == reason
