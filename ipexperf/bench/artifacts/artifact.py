"""int8 artifacts: a separate worker quantises a trained network and saves it, and every launch loads it.

Static quantisation is calibrated on training examples; dynamic quantisation needs no calibration. A `script` is the
traced and frozen graph, for `torch.jit.load`. A `program` is an exported one, for `torch.export.load`. A `state` holds
the weights of the converted network, to load into one that is converted again. PyTorch documents each of these ways.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from ipexperf.bench import plain_outputs, registry
from ipexperf.bench.api import Workbench
from ipexperf.bench.artifacts import pt2e, weights
from ipexperf.bench.cell import Cell
from ipexperf.bench.knob import Knob
from ipexperf.bench.lazy import torch
from ipexperf.bench.machine.facts import Facts, gather
from ipexperf.bench.model import Examples, Split, Tensors
from ipexperf.case import NetworkCase
from ipexperf.errors import WorkerError
from ipexperf.proof import accuracy
from ipexperf.result import Check

RECIPE = {"version": 2, "examples": 256, "batch": 32, "seed": 0}
FLAGS = frozenset({"avx2", "avx_vnni", "avx512bw", "avx512vl", "avx512dq", "avx512_vnni", "amx_int8"})
"""Instruction sets that affect how a network is quantised."""
VNNI = frozenset({"avx_vnni", "avx512_vnni", "amx_int8"})
"""Without one of them, kernels add two products in 16 bits, which overflow unless activations have only 7 bits."""
ENGINE = "x86"
"""Stock PyTorch's default engine, which limits activations to 7 bits: correct on CPUs with and without VNNI."""
SIDES = (".json", ".qconf.json")
"""Suffixes of files beside an artifact: its recipe, and the observers as the stack writes them."""


QUANTISATION = Knob(
    "quantisation",
    "static: calibrated scales, convolutions and linear layers; dynamic: linear layers alone",
    ("static", "dynamic"),
    dtypes=("int8",),
    of_model="quantisation",
)


def quantisation_of(cell: Cell) -> str:
    """Return static or dynamic: as requested, or the model's default."""
    return cell.knob("quantisation") or registry.models.get(cell.model).quantisation


def why_not(cell: Cell, facts: Facts) -> str | None:
    """Return why no stack supports int8 in this cell, or None."""
    if not registry.modes.get(cell.mode).artifact:
        built = [name for name in registry.modes.names() if registry.modes.get(name).artifact]
        return f"int8 is built for {', '.join(built)}, not for {cell.mode}"
    if cell.knob("channels_last") == "off":
        return "int8 convolutions always use the channels-last layout"
    return None if cell.device != "cpu" or "avx2" in facts.cpu_flags else "int8 kernels need a CPU with AVX2"


def address(case: NetworkCase, made_of: str, facts: Facts) -> str:
    """Return the address of an artifact: a hash of case, weights, recipe, torch, IPEX and instruction sets."""
    kind = registry.modes.get(case.mode).artifact
    # Other knobs of a mode, such as its number of instances, do not change the artifact.
    document = {name: value for name, value in case.to_json().items() if name not in ("mode", "knobs")}
    turned = [knob for knob in case.knobs if knob[0] in ("quantisation", "channels_last")]
    parts = (document, turned, kind, made_of, RECIPE, *_software(facts))
    digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
    return f"{case.model}-{case.stack}-int8-{kind}-{digest[:16]}.pt"


def _software(facts: Facts) -> tuple[dict[str, str | None], list[str]]:
    """Return the software and instruction sets that the result depends on."""
    versions = {name: facts.packages.get(name) for name in ("torch", "torchao", "intel-extension-for-pytorch")}
    return versions, sorted(facts.cpu_flags & FLAGS)


def calibration_examples(split: Split) -> Examples:
    """Return the training examples for calibration: always the same ones, and none that accuracy uses."""
    generator = torch.Generator().manual_seed(RECIPE["seed"])
    return split.train.part(torch.randperm(len(split.train), generator=generator)[: RECIPE["examples"]])


def _digest(inputs: Tensors) -> str:
    return hashlib.sha256(b"".join(_bytes(value) for value in inputs)).hexdigest()


def _bytes(value: Any) -> bytes:
    data: bytes = value.contiguous().numpy().tobytes()
    return data


def singly(inputs: Tensors) -> list[bytes]:
    """Return the inputs of each example as bytes."""
    return [b"".join(map(_bytes, parts)) for parts in zip(*inputs, strict=True)]


def make(bench: Workbench, path: str) -> dict[str, Any]:
    """Quantise the case's network, and save it with its recipe beside it."""
    split = weights.read(bench)
    examples = calibration_examples(split)
    example = _laid_out(examples, [index % len(examples) for index in range(bench.case.batch)], bench)
    static = bench.knob("quantisation") == "static"
    batches = []
    if static:
        bench.say(f"calibrating {bench.model.name} once, on {len(examples)} training examples")
        begins = range(0, len(examples), RECIPE["batch"])
        batches = [_laid_out(examples, slice(begin, begin + RECIPE["batch"]), bench) for begin in begins]
    quantised = bench.stack.quantise(bench.laid_out(weights.network(bench)), example, batches, bench)
    with torch.no_grad():
        if bench.mode.artifact == "script":
            torch.jit.freeze(plain_outputs.traced(quantised.network, example)).save(path)
        elif bench.mode.artifact == "program":
            pt2e.save(quantised.network, example, path)
        else:
            torch.save(quantised.network.state_dict(), path)
    sha256 = _digest(examples.inputs)
    calibration = {"examples": len(examples), "of": len(split.train), "seed": RECIPE["seed"], "sha256": sha256}
    recipe = {
        "recipe": RECIPE,
        "case": bench.case.to_json(),
        "quantisation": bench.knob("quantisation"),
        "kernels": quantised.recipe,
        "calibration": calibration if static else None,
        "made_by": _software(gather()),
        "weights": _weights(bench),
        **_rounding(bench, split, example, batches, quantised.network),
    }
    Path(path + SIDES[0]).write_text(json.dumps(recipe, indent=1, sort_keys=True) + "\n")
    Path(path + SIDES[1]).write_text(quantised.observers)
    return {"recipe": quantised.recipe}


def _laid_out(examples: Examples, indices: Any, bench: Workbench) -> Tensors:
    """Return the inputs of some examples in the memory layout of the case."""
    return tuple(map(bench.laid_out, examples.part(indices).inputs))


def _rounding(
    bench: Workbench, split: Split, example: Tensors, batches: list[Tensors], network_int8: Any
) -> dict[str, Any]:
    """Return the error of stock PyTorch's eager int8: it is due to the dtype, not to the stack."""
    network, task = weights.network(bench), bench.task
    held_out = split.test.part(slice(bench.model.held_out))
    reference = accuracy.reference(network, held_out, task)
    stock = registry.stacks.get("stock")
    try:
        if bench.stack is not stock:
            network_int8 = stock.quantise(bench.laid_out(network), example, batches, bench).network
        outputs = accuracy.predict(
            lambda inputs: network_int8(*inputs),
            held_out.inputs,
            len(example[0]),
            lambda inputs: tuple(map(bench.laid_out, inputs)),
        )
    except Exception as error:
        if bench.stack is stock:
            raise
        # The bound is then the dtype's, and the launch's notes give the reason.
        return {"rounding": None, "agreed": None, "no_rounding": f"{type(error).__name__}: {error}"}
    agreed = task.agreement(outputs, reference.outputs)
    return {"rounding": accuracy.distance(outputs, reference, task), "agreed": agreed}


def _path(bench: Workbench) -> str:
    if bench.settings.artifact is None:
        raise WorkerError("error", f"{bench.case.id} loads a quantised network, but no file was given")
    # Packed weights must be unpacked by the engine that packed them.
    torch.backends.quantized.engine = ENGINE
    return bench.settings.artifact


def script(bench: Workbench) -> Any:
    """Load the frozen graph, as a deployment does."""
    return torch.jit.load(_path(bench))


def program(bench: Workbench) -> Any:
    """Load the quantised graph, which is not compiled yet."""
    return pt2e.load(_path(bench), bench.case.device)


def state(network: Any, example: Any, bench: Workbench) -> Any:
    """Convert the network again without calibration, and load the saved weights and scales."""
    state_dict = weights.restore(_path(bench))
    converted = bench.stack.quantise(network, example, [], bench).network
    converted.load_state_dict(state_dict)
    return converted


def recipe(bench: Workbench) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(Path(_path(bench) + SIDES[0]).read_text())
    return document


def calibrated(bench: Workbench) -> list[Check]:
    """Check that calibration used the training examples of the recipe, and none that accuracy uses."""
    if bench.knob("quantisation") == "dynamic":
        return []
    split = weights.read(bench)
    calibration, examples_of_recipe = recipe(bench)["calibration"] or {}, calibration_examples(split)
    examples = set(singly(examples_of_recipe.inputs))
    overlap = sum(example in examples for example in singly(split.test.inputs))
    unchanged = calibration.get("sha256") == _digest(examples_of_recipe.inputs)
    examples_text = (
        f"{len(examples_of_recipe)} of {len(split.train)} training examples" if unchanged else "other examples"
    )
    text = f"{examples_text}, {overlap} of them held out for accuracy"
    return [
        Check("calibration", unchanged and not overlap, text, "the recipe's training examples, none of them held out")
    ]


def _weights(bench: Workbench) -> str:
    """Return a checksum of the untouched network's weights."""
    return _digest(tuple(weights.network(bench).state_dict().values()))


def made_of(bench: Workbench) -> list[Check]:
    """Check that the artifact was made from these weights. The address does not tell it of untrained networks."""
    if bench.model.trained:
        return []
    recorded, digest = recipe(bench)["weights"], _weights(bench)
    text = "this network's" if digest == recorded else f"those of another network: {weights.AGAIN}"
    return [Check("quantised_weights", digest == recorded, text, "this network's")]


def notes(bench: Workbench) -> list[str]:
    """Return notes on how the network was quantised."""
    document = recipe(bench)
    calibration = document["calibration"]
    method = (
        f"calibrated on {calibration['examples']} training examples (seed {calibration['seed']})"
        if calibration
        else "dynamic"
    )
    lines = [f"int8: {document['kernels']}, {method}"]
    if document.get("no_rounding"):
        lines.append(
            f"int8: fidelity has an absolute bound, because stock has no int8 of this model: {document['no_rounding']}"
        )
    return lines
