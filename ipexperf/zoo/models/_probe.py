"""Fit only the last layer, for networks whose other weights are random or trained at another size.

The inputs of the layer are computed once, and its weights by ridge regression on the classes.
"""

from __future__ import annotations

from typing import Any

from ipexperf.ext import Examples, Split, Workbench, torch

EXAMPLES = 512
"""Number of training examples, enough for one layer. A large network takes minutes for them at 224 x 224."""
PART = 32
RIDGE = 1e-2
"""Ridge, relative to the mean variance of inputs: weak features get small weights, which suits low precision."""
OF_TEXT = 1.0
"""The ridge for texts, of which a smaller one overfits some hundred."""


def fit(bench: Workbench, split: Split, network: Any, examples: int = EXAMPLES, ridge: float = RIDGE) -> None:
    """Fit the last layer of a network, and leave the others unchanged."""
    examples_to_fit = _training_examples(split, examples)
    head = [layer for layer in network.modules() if isinstance(layer, torch.nn.Linear)][-1]
    features: list[Any] = []
    hook = head.register_forward_pre_hook(lambda _, inputs: features.append(inputs[0].cpu().double()))
    bench.say(f"fitting the last layer of {bench.model.name} once, on {len(examples_to_fit)} training examples")
    network.eval()
    _run_all(bench, network, examples_to_fit)
    hook.remove()
    classes = torch.nn.functional.one_hot(examples_to_fit.targets[0], head.out_features).double()
    weight, bias = solve(torch.cat(features), classes, ridge)
    with torch.no_grad():
        head.weight.copy_(weight)
        head.bias.copy_(bias)


def fit_anew(bench: Workbench, split: Split, network: Any) -> None:
    """Fit the last layer after updating the statistics of batch norm, for inputs unlike those of the training."""
    norms = [layer for layer in network.modules() if isinstance(layer, torch.nn.modules.batchnorm._BatchNorm)]  # noqa: SLF001 - the base of them all
    momenta = [layer.momentum for layer in norms]
    for layer in norms:
        layer.reset_running_stats()
        layer.momentum = None  # cumulative mean
    network.train()
    _run_all(bench, network, _training_examples(split, EXAMPLES))
    for layer, momentum in zip(norms, momenta, strict=True):
        layer.momentum = momentum
    fit(bench, split, network)


def solve(features: Any, classes: Any, ridge: float = RIDGE) -> tuple[Any, Any]:
    """Return weights and bias of the linear layer that fits these classes best."""
    middle, mean = features.mean(0), classes.mean(0)
    centred = features - middle
    gram = centred.T @ centred
    gram.diagonal().add_(ridge * gram.diagonal().mean())
    weight = torch.linalg.solve(gram, centred.T @ (classes - mean)).T
    return weight, mean - weight @ middle


def _training_examples(split: Split, examples: int) -> Examples:
    """Return the first training examples, in whole parts: batch norm needs more than one example."""
    return split.train.part(slice(min(examples, len(split.train) // PART * PART)))


def _run_all(bench: Workbench, network: Any, examples: Examples) -> None:
    """Call the network with all examples, in parts."""
    with torch.no_grad():
        for begin in range(0, len(examples), PART):
            network(*map(bench.device.put, examples.part(slice(begin, begin + PART)).inputs))
