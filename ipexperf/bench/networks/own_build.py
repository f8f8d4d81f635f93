"""Build the user's own networks and their inputs. Runs in the worker and never downloads anything."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ipexperf.bench import plain_outputs, registry
from ipexperf.bench.api import Tensors
from ipexperf.bench.lazy import torch
from ipexperf.bench.networks import own
from ipexperf.bench.networks.own import Shape, Target
from ipexperf.errors import UsageError, WorkerError

EXAMPLE = "example"
LENGTH = 128
"""Default length of a text in tokens, if the network accepts it."""
SEED = 0
Build = Callable[[Target], Any]


def network(target: Target) -> Any:
    """Build the network, wrapped to return plain tensors if it does not.

    A network that returns plain tensors is not wrapped, because stacks optimise a plain network better.
    """
    built = {"hf": _hf, "timm": _timm}.get(target.hub, _called)(target)
    if not isinstance(built, torch.nn.Module):
        return built
    try:
        examples = inputs(target, 1)
        if plain_outputs.plain(built, examples):
            return built
    except Exception:  # noqa: BLE001 - it rejects its inputs or has none: whoever calls it next reports that
        return built
    return plain_outputs.answering(built, len(examples))


def inputs(target: Target, count: int) -> Tensors:
    """Return this many examples, always the same: from declared shapes, from `example()`, or from a configuration."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        if target.shapes and target.hub != "hf":
            return tuple(torch.randn(count, *shape) for shape in target.shapes)
        return {"hf": _hf_inputs, "timm": _timm_inputs}.get(target.hub, _examples)(target, count)


def _wrong(target: Target, reason: object) -> WorkerError:
    return WorkerError("error", f"{target.text}: {reason}")


def _module(target: Target) -> Any:
    own.importable()
    try:
        # A module may use random numbers on import, which happens once; the network must be the same each time.
        with torch.random.fork_rng(devices=[]):
            if target.where.endswith(".py"):
                return registry.load_file(Path(target.where))
            return importlib.import_module(target.where)
    except UsageError as error:
        raise _wrong(target, error) from None
    except ImportError as error:
        raise WorkerError("import_error", f"{target.text}: {error}") from error


def _called(target: Target) -> Any:
    """Call the callable."""
    module = _module(target)
    build = getattr(module, target.what, None)
    if not callable(build):
        names = [name for name, value in vars(module).items() if callable(value) and not name.startswith("_")]
        near = registry.nearest(target.what, names)
        raise _wrong(target, f"{target.where} has no callable {target.what}{near}")
    if isinstance(build, torch.nn.Module):
        raise _wrong(target, f"{target.what} is a network: expected a function or class that builds one")
    try:
        return build()
    except TypeError as error:
        raise _wrong(target, f"{target.what} is called without arguments: {error}") from error


def _examples(target: Target, count: int) -> Tensors:
    """Call `CALLABLE_example()` or `example()` of the module until there are enough examples."""
    module = _module(target)
    example = getattr(module, f"{target.what}_{EXAMPLE}", None) or getattr(module, EXAMPLE, None)
    if not callable(example):
        more = f"write {EXAMPLE}() beside {target.what}, or give the shape of one: {target.text}@3x224x224"
        raise _wrong(target, f"its inputs are unknown: {more}")
    parts: list[Tensors] = []
    while sum(len(part[0]) for part in parts) < count:
        parts.append(_batch(target, example()))
    return tuple(torch.cat(values)[:count] for values in zip(*parts, strict=True))


def _batch(target: Target, answer: Any) -> Tensors:
    """Convert the result of `example()` to a batch: tensors whose first dimension counts examples."""
    values = answer if isinstance(answer, (tuple, list)) else (answer,)
    fine = values and all(isinstance(value, torch.Tensor) and value.dim() and len(value) for value in values)
    if not fine or len({len(value) for value in values}) > 1:
        expected = "a tensor, or a tuple of tensors of one length: their first dimension counts examples"
        raise _wrong(target, f"its {EXAMPLE}() returned {_description(answer)}: expected {expected}")
    return tuple(values)


def _description(values: Any) -> str:
    if isinstance(values, torch.Tensor):
        return f"a tensor of shape {tuple(values.shape)}"
    if isinstance(values, (tuple, list)):
        return f"({', '.join(map(_description, values))})"
    return "nothing" if values is None else f"a {type(values).__name__}"


@functools.cache
def _configuration(target: Target) -> Any:
    transformers = importlib.import_module("transformers")
    configuration = transformers.AutoConfig.from_pretrained(
        _named(target), local_files_only=True, trust_remote_code=False
    )
    if configuration.is_encoder_decoder:
        raise _wrong(target, "it is an encoder with a decoder, which needs a text to continue: name a callable")
    return configuration


def _named(target: Target) -> str:
    return str(target.local) if target.local else target.where


def _hf(target: Target) -> Any:
    """Load the network of the class in its configuration, with all of its weights."""
    transformers, configuration = importlib.import_module("transformers"), _configuration(target)
    kind = getattr(transformers, (configuration.architectures or ["AutoModel"])[0], transformers.AutoModel)
    configuration.use_cache = False
    try:
        built, info = kind.from_pretrained(
            _named(target), config=configuration, local_files_only=True, output_loading_info=True
        )
    except OSError as error:
        raise _wrong(target, f"its weights are not here, and nothing is downloaded: {_first(error)}") from error
    if info["missing_keys"]:
        lacking = ", ".join(sorted(info["missing_keys"])[:3])
        raise _wrong(target, f"its weights lack {lacking}, which would be random")

    class Named(torch.nn.Module):  # type: ignore[misc] # torch is imported late, and has no types here
        """Passes the one input by name, and requests a plain tuple."""

        def __init__(self) -> None:
            super().__init__()
            self.network = built.float()

        def forward(self, value: Any) -> Any:
            return self.network(**{built.main_input_name: value}, return_dict=False)

    return Named()


def _hf_inputs(target: Target, count: int) -> Tensors:
    """Return token ids or images, of the size in the configuration."""
    configuration = _configuration(target)
    shape: Shape | None = target.shapes[0] if target.shapes else None
    if words := getattr(configuration, "vocab_size", None):
        most = getattr(configuration, "max_position_embeddings", LENGTH)
        return (torch.randint(0, words, (count, *(shape or (min(LENGTH, most),)))),)
    if side := getattr(configuration, "image_size", None):
        height, width = side if isinstance(side, (list, tuple)) else (side, side)
        return (torch.randn(count, *(shape or (getattr(configuration, "num_channels", 3), height, width))),)
    raise _wrong(target, "its configuration has neither a vocabulary nor an image size: name a callable")


def _timm(target: Target) -> Any:
    timm = importlib.import_module("timm")
    if target.local:
        return timm.create_model(f"local-dir:{target.local}", pretrained=True)
    try:
        configuration = timm.get_pretrained_cfg(target.where)
    except RuntimeError as error:
        raise _wrong(target, error) from error
    if configuration is None or not configuration.hf_hub_id:
        raise _wrong(target, "timm knows no weights of it in the hub: name timm.models:CALLABLE@SHAPE for random ones")
    try:
        return timm.create_model(target.where, pretrained=True)
    except (OSError, RuntimeError) as error:
        raise _wrong(target, f"its weights are not here, and nothing is downloaded: {_first(error)}") from error


def _timm_inputs(target: Target, count: int) -> Tensors:
    return (torch.randn(count, *_timm_size(target)),)


@functools.cache
def _timm_size(target: Target) -> Shape:
    size: Shape = _timm(target).pretrained_cfg["input_size"]
    return size


def _first(error: Exception) -> str:
    """Return the first sentence of a long message."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
