"""Build the user's own networks and their inputs. Runs in the worker and never downloads anything."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ipexperf.bench import plain_outputs, registry, user_files
from ipexperf.bench.lazy import torch
from ipexperf.bench.machine import source as files
from ipexperf.bench.model import Examples, Tensors
from ipexperf.bench.networks import own_target
from ipexperf.bench.networks.own_target import Shape, Target, importable
from ipexperf.errors import AbsentError, UsageError, WorkerError

EXAMPLE = "example"
LENGTH = 128
"""Default length of a text in tokens, if the network accepts it."""
SEED = 0


def network(target: Target) -> Any:
    """Build the network, wrapped to return plain tensors if it does not.

    A network that returns plain tensors is not wrapped, because stacks optimise a plain network better.
    """
    built = {"hf": _hf, "timm": _timm}.get(target.hub, _called)(target)
    if not isinstance(built, torch.nn.Module):
        return built
    try:
        example = inputs(target, 1)
        if plain_outputs.plain(built, example):
            return built
    except Exception:  # noqa: BLE001 - it rejects its inputs or has none: whoever calls it next reports that
        return built
    return plain_outputs.answering(built, len(example))


def inputs(target: Target, count: int) -> Tensors:
    """Return the inputs of this many examples."""
    return examples(target, count).inputs


def examples(target: Target, count: int) -> Examples:
    """Return this many examples, always the same: from shapes, a configuration, or a function of the module.

    They have targets if `training_batch()` made them.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        if target.shapes and target.hub != "hf":
            return Examples(tuple(torch.randn(count, *shape) for shape in target.shapes), ())
        if target.hub:
            inputs = _hf_inputs(target, count) if target.hub == "hf" else (torch.randn(count, *_timm_size(target)),)
            return Examples(inputs, ())
        return _examples(target, count)


def loss(target: Target) -> Callable[[Any, Any], Any]:
    """Return the loss that the module names."""
    loss_function: Callable[[Any, Any], Any] | None = _attribute_for(target, own_target.LOSS)
    if not callable(loss_function):
        expected = "a function of answers and targets, such as torch.nn.functional.cross_entropy"
        raise _wrong(target, f"its {own_target.LOSS} is {_description(loss_function)}: expected {expected}")
    return loss_function


def _wrong(target: Target, reason: object) -> WorkerError:
    return WorkerError("error", f"{target.text}: {reason}")


def _module(target: Target) -> Any:
    importable()
    replaced, path = files.Replaced.of(), Path(target.location)
    if replaced and path.suffix == ".py" and (replaced.lacks(path) or not path.is_file()):
        raise AbsentError(f"{target.text}: there is no such file")
    try:
        # A module may use random numbers on import, which happens once; the network must be the same each time.
        with torch.random.fork_rng(devices=[]):
            if target.location.endswith(".py"):
                return user_files.load_file(Path(target.location))
            return importlib.import_module(target.location)
    except UsageError as error:
        raise _wrong(target, error) from None
    except ImportError as error:
        if replaced and error.name and f"{target.location}.".startswith(f"{error.name}."):
            raise AbsentError(f"{target.text}: {error}") from error
        raise WorkerError("import_error", f"{target.text}: {error}") from error


def _called(target: Target) -> Any:
    module = _module(target)
    build = getattr(module, target.callable_name, None)
    if not callable(build):
        names = [name for name, value in vars(module).items() if callable(value) and not name.startswith("_")]
        near = registry.nearest(target.callable_name, names)
        raise AbsentError(f"{target.text}: {target.location} has no callable {target.callable_name}{near}")
    if isinstance(build, torch.nn.Module):
        raise _wrong(target, f"{target.callable_name} is a network: expected a function or class that builds one")
    try:
        return build()
    except TypeError as error:
        raise _wrong(target, f"{target.callable_name} is called without arguments: {error}") from error


def _attribute_for(target: Target, name: str) -> Any:
    """Return the module's attribute `CALLABLE_name`, which is for this callable alone, else `name`, else None."""
    module = _module(target)
    name_for_callable = f"{target.callable_name}_{name}"
    return getattr(module, name_for_callable) if hasattr(module, name_for_callable) else getattr(module, name, None)


def _examples(target: Target, count: int) -> Examples:
    """Call `training_batch()` or `example()` of the module until there are enough examples."""
    make, batch = _attribute_for(target, own_target.BATCH), _with_targets
    if not callable(make):
        make, batch = _attribute_for(target, EXAMPLE), _without_targets
    if not callable(make):
        _called(target)  # says first if there is nothing of its name
        advice = f"write {EXAMPLE}() beside {target.callable_name}, or give the shape of one: {target.text}@3x224x224"
        raise _wrong(target, f"its inputs are unknown: {advice}")
    parts: list[Examples] = []
    while sum(map(len, parts)) < count:
        parts.append(batch(target, make()))
    return Examples(
        tuple(torch.cat(values)[:count] for values in zip(*(part.inputs for part in parts), strict=True)),
        tuple(torch.cat(values)[:count] for values in zip(*(part.targets for part in parts), strict=True)),
    )


def _without_targets(target: Target, answer: Any) -> Examples:
    """Convert the result of `example()` to a batch: tensors whose first dimension counts examples."""
    values = _tensors(answer)
    if values is None:
        expected = "a tensor, or a tuple of tensors of one length: their first dimension counts examples"
        raise _wrong(target, f"its {EXAMPLE}() returned {_description(answer)}: expected {expected}")
    return Examples(values, ())


def _with_targets(target: Target, answer: Any) -> Examples:
    """Convert the result of `training_batch()`, inputs and targets, to a batch."""
    if isinstance(answer, (tuple, list)) and len(answer) == len(("inputs", "targets")):
        inputs, targets = map(_tensors, answer)
        if inputs is not None and targets is not None and len(inputs[0]) == len(targets[0]):
            return Examples(inputs, targets)
    expected = "inputs and targets, each a tensor or a tuple of tensors: all of one length, which counts examples"
    raise _wrong(target, f"its {own_target.BATCH}() returned {_description(answer)}: expected {expected}")


def _tensors(answer: Any) -> Tensors | None:
    """Return a tensor or the tensors of a tuple, or None if they are something else or of several lengths."""
    values = tuple(answer) if isinstance(answer, (tuple, list)) else (answer,)
    valid = values and all(isinstance(value, torch.Tensor) and value.dim() and len(value) for value in values)
    return values if valid and len({len(value) for value in values}) == 1 else None


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
        _name_or_folder(target), local_files_only=True, trust_remote_code=False
    )
    if configuration.is_encoder_decoder:
        raise _wrong(target, "it is an encoder with a decoder, which needs a text to continue: name a callable")
    return configuration


def _name_or_folder(target: Target) -> str:
    """The folder of a local network, whose configuration then counts as the user's source, or the name of another."""
    if target.local is None:
        return target.location
    return str(files.named(target.local / "config.json").parent)


def _hf(target: Target) -> Any:
    """Load the network of the class in its configuration, with all of its weights."""
    transformers, configuration = importlib.import_module("transformers"), _configuration(target)
    kind = getattr(transformers, (configuration.architectures or ["AutoModel"])[0], transformers.AutoModel)
    configuration.use_cache = False
    try:
        built, info = kind.from_pretrained(
            _name_or_folder(target), config=configuration, local_files_only=True, output_loading_info=True
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
    if vocabulary := getattr(configuration, "vocab_size", None):
        longest = getattr(configuration, "max_position_embeddings", LENGTH)
        return (torch.randint(0, vocabulary, (count, *(shape or (min(LENGTH, longest),)))),)
    if side := getattr(configuration, "image_size", None):
        height, width = side if isinstance(side, (list, tuple)) else (side, side)
        return (torch.randn(count, *(shape or (getattr(configuration, "num_channels", 3), height, width))),)
    raise _wrong(target, "its configuration has neither a vocabulary nor an image size: name a callable")


def _timm(target: Target) -> Any:
    timm = importlib.import_module("timm")
    if target.local:
        return timm.create_model(f"local-dir:{_name_or_folder(target)}", pretrained=True)
    try:
        configuration = timm.get_pretrained_cfg(target.location)
    except RuntimeError as error:
        raise _wrong(target, error) from error
    if configuration is None or not configuration.hf_hub_id:
        raise _wrong(target, "timm knows no weights of it in the hub: name timm.models:CALLABLE@SHAPE for random ones")
    try:
        return timm.create_model(target.location, pretrained=True)
    except (OSError, RuntimeError) as error:
        raise _wrong(target, f"its weights are not here, and nothing is downloaded: {_first(error)}") from error


@functools.cache
def _timm_size(target: Target) -> Shape:
    size: Shape = _timm(target).pretrained_cfg["input_size"]
    return size


def _first(error: Exception) -> str:
    """Return the first sentence of a long message."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
