"""int8: a worker of its own quantises a trained network and saves it, and every launch loads what was saved.

Static quantisation watches training examples, converts, and saves; dynamic quantisation has nothing to watch.
`script` is the traced and frozen graph, for `torch.jit.load`; `program` is the exported one, for `torch.export.load`;
`state` is the weights of the converted network, for one that is converted again. PyTorch documents each of them so.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ipexperf.bench import accuracy, answers, pt2e, registry, weights
from ipexperf.bench.facts import Facts, gather
from ipexperf.bench.kinds import Cell
from ipexperf.bench.knobs import Knob
from ipexperf.bench.lazy import torch
from ipexperf.bench.subjects import Examples, Model, Split, Tensors
from ipexperf.bench.workbench import Workbench
from ipexperf.case import Case
from ipexperf.errors import WorkerError
from ipexperf.result import Check

RECIPE = {"version": 2, "examples": 256, "batch": 32, "seed": 0}
FLAGS = frozenset({"avx2", "avx_vnni", "avx512bw", "avx512vl", "avx512dq", "avx512_vnni", "amx_int8"})
"""The instruction sets that decide how a network is quantised."""
VNNI = frozenset({"avx_vnni", "avx512_vnni", "amx_int8"})
"""Without one of them, kernels add two products in 16 bits, which overflow unless activations have 7 bits only."""
ENGINE = "x86"
"""Stock PyTorch's default engine, whose recipe keeps activations to 7 bits: right on CPUs with and without VNNI."""
SIDES = (".json", ".qconf.json")
"""What lies beside an artifact: what it was made of, and the observers as the software itself writes them."""


@dataclass(frozen=True)
class Quantisation(Knob):
    """How a network becomes int8: the model's way where nothing is asked for."""

    name: str = "quantisation"
    help: str = "static: calibrated scales, convolutions and linear layers; dynamic: linear layers alone"
    values: tuple[str, ...] = ("static", "dynamic")
    dtypes: tuple[str, ...] | None = ("int8",)

    def default(self, model: Model, beside: Mapping[str, str]) -> str:
        del beside
        return model.quantisation


def way(cell: Cell) -> str:
    """Static or dynamic: what was asked for, or the model's."""
    return cell.knob("quantisation") or registry.models.get(cell.model).quantisation


def why_not(cell: Cell, facts: Facts) -> str | None:
    """Why no stack has int8 in this cell, or None."""
    if not registry.modes.get(cell.mode).artifact:
        built = [name for name in registry.modes.names() if registry.modes.get(name).artifact]
        return f"int8 is built for {', '.join(built)}, not for {cell.mode}"
    if cell.knob("channels_last") == "off":
        return "int8 convolutions lay their images out channels last, whatever is asked"
    return None if "avx2" in facts.cpu_flags else "int8 kernels need a CPU with AVX2"


def address(case: Case, made_of: str, facts: Facts) -> str:
    """Names an artifact by what it is made of: case, weights, recipe, torch, IPEX and instruction sets."""
    kind = registry.modes.get(case.mode).artifact
    # Whatever else a mode can turn, such as its number of instances, changes nothing in what they load.
    document = {name: value for name, value in case.to_json().items() if name not in ("mode", "knobs")}
    turned = [knob for knob in case.knobs if knob[0] in ("quantisation", "channels_last")]
    parts = (document, turned, kind, made_of, RECIPE, *_made_by(facts))
    digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
    return f"{case.model}-{case.stack}-int8-{kind}-{digest[:16]}.pt"


def _made_by(facts: Facts) -> tuple[dict[str, str | None], list[str]]:
    """The software and the instruction sets that decide what comes out."""
    versions = {name: facts.packages.get(name) for name in ("torch", "torchao", "intel-extension-for-pytorch")}
    return versions, sorted(facts.cpu_flags & FLAGS)


def chosen(split: Split) -> Examples:
    """The training examples that a network is calibrated on: always the same, and never one that it is judged by."""
    generator = torch.Generator().manual_seed(RECIPE["seed"])
    return split.train.part(torch.randperm(len(split.train), generator=generator)[: RECIPE["examples"]])


def _digest(inputs: Tensors) -> str:
    return hashlib.sha256(b"".join(_bytes(value) for value in inputs)).hexdigest()


def _bytes(value: Any) -> bytes:
    found: bytes = value.contiguous().numpy().tobytes()
    return found


def singly(inputs: Tensors) -> list[bytes]:
    """Each example as the bytes of all that a network is given of it."""
    return [b"".join(map(_bytes, parts)) for parts in zip(*inputs, strict=True)]


def make(bench: Workbench, path: str) -> dict[str, Any]:
    """Quantises the case's network, and saves it with what it was made of beside it."""
    split = weights.read(bench)
    watched = chosen(split)
    example = _laid_out(watched, [index % len(watched) for index in range(bench.case.batch)], bench)
    static = bench.knob("quantisation") == "static"
    batches = []
    if static:
        bench.say(f"calibrating {bench.model.name} once, on {len(watched)} training examples")
        begins = range(0, len(watched), RECIPE["batch"])
        batches = [_laid_out(watched, slice(begin, begin + RECIPE["batch"]), bench) for begin in begins]
    made = bench.stack.quantise(bench.laid_out(weights.network(bench)), example, batches, bench)
    with torch.no_grad():
        if bench.mode.artifact == "script":
            torch.jit.freeze(answers.traced(made.network, example)).save(path)
        elif bench.mode.artifact == "program":
            pt2e.save(made.network, example, path)
        else:
            torch.save(made.network.state_dict(), path)
    sha256 = _digest(watched.inputs)
    calibration = {"examples": len(watched), "of": len(split.train), "seed": RECIPE["seed"], "sha256": sha256}
    recipe = {
        "recipe": RECIPE,
        "case": bench.case.to_json(),
        "quantisation": bench.knob("quantisation"),
        "kernels": made.told,
        "calibration": calibration if static else None,
        "made_by": _made_by(gather()),
        "weights": _weights(bench),
        **_rounding(bench, split, example, batches, made.network),
    }
    Path(path + SIDES[0]).write_text(json.dumps(recipe, indent=1, sort_keys=True) + "\n")
    Path(path + SIDES[1]).write_text(made.observers)
    return {"told": made.told}


def _laid_out(examples: Examples, which: Any, bench: Workbench) -> Tensors:
    """Some examples' inputs, laid out as the case has them."""
    return tuple(map(bench.laid_out, examples.part(which).inputs))


def _rounding(bench: Workbench, split: Split, example: Tensors, batches: list[Tensors], made: Any) -> dict[str, Any]:
    """The error of stock PyTorch's int8, eager: what is due to the dtype and not to the stack."""
    network, task = weights.network(bench), bench.task
    held_out = split.test.part(slice(bench.model.held_out))
    known = accuracy.reference(network, held_out, task)
    stock = registry.stacks.get("stock")
    try:
        if bench.stack is not stock:
            made = stock.quantise(bench.laid_out(network), example, batches, bench).network
        outputs = accuracy.predict(
            lambda inputs: made(*inputs), held_out.inputs, len(example[0]), lambda x: tuple(map(bench.laid_out, x))
        )
    except Exception as error:
        if bench.stack is stock:
            raise
        # Then the bound is the dtype's, and the launch's notes say why.
        return {"rounding": None, "agreed": None, "no_rounding": f"{type(error).__name__}: {error}"}
    agreed = task.agreement(outputs, known.outputs)
    return {"rounding": accuracy.distance(outputs, known, task), "agreed": agreed}


def _path(bench: Workbench) -> str:
    if bench.settings.artifact is None:
        raise WorkerError("error", f"{bench.case.id} runs what was quantised before, and no such file was given")
    # Packed weights are unpacked by the engine that packed them.
    torch.backends.quantized.engine = ENGINE
    return bench.settings.artifact


def script(bench: Workbench) -> Any:
    """The frozen graph, as whoever deploys it loads it."""
    return torch.jit.load(_path(bench))


def program(bench: Workbench) -> Any:
    """The quantised graph, which is still to be compiled."""
    return pt2e.load(_path(bench))


def state(network: Any, example: Any, bench: Workbench) -> Any:
    """The network converted again, without calibration, with the weights and scales that were saved."""
    kept = weights.restore(_path(bench))
    converted = bench.stack.quantise(network, example, [], bench).network
    converted.load_state_dict(kept)
    return converted


def recipe(bench: Workbench) -> dict[str, Any]:
    """What the artifact was made of."""
    found: dict[str, Any] = json.loads(Path(_path(bench) + SIDES[0]).read_text())
    return found


def calibrated(bench: Workbench) -> list[Check]:
    """The examples that were watched are the training examples of the recipe, and none that accuracy looks at."""
    if bench.knob("quantisation") == "dynamic":
        return []
    split = weights.read(bench)
    known, watched = recipe(bench)["calibration"] or {}, chosen(split)
    seen = set(singly(watched.inputs))
    judged = sum(example in seen for example in singly(split.test.inputs))
    same = known.get("sha256") == _digest(watched.inputs)
    which = f"{len(watched)} of {len(split.train)} training examples" if same else "other examples"
    told = f"{which}, {judged} of them held out for accuracy"
    return [Check("calibration", same and not judged, told, "the recipe's training examples, none of them held out")]


def _weights(bench: Workbench) -> str:
    """What the untouched network holds, as one sum."""
    return _digest(tuple(weights.network(bench).state_dict().values()))


def made_of(bench: Workbench) -> list[Check]:
    """A network that is built and not loaded may have changed since: the artifact's name cannot tell."""
    if bench.model.learned:
        return []
    known, found = recipe(bench)["weights"], _weights(bench)
    told = "this network's" if found == known else f"those of another network: {weights.AGAIN}"
    return [Check("quantised_weights", found == known, told, "this network's")]


def notes(bench: Workbench) -> list[str]:
    """How the network was quantised, for whoever reads its numbers."""
    known = recipe(bench)
    seen = known["calibration"]
    how = f"calibrated on {seen['examples']} training examples (seed {seen['seed']})" if seen else "dynamic"
    found = [f"int8: {known['kernels']}, {how}"]
    if known.get("no_rounding"):
        found.append(
            f"int8: fidelity is bounded absolutely, for stock has no int8 of this model: {known['no_rounding']}"
        )
    return found
