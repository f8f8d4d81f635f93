"""What stock PyTorch's int8 keeps of answers, and where it is no measure. Needs torch; the weights are random."""

from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from ipexperf.bench import registry
from ipexperf.bench.artifacts import artifact
from ipexperf.bench.model import Examples, Split
from ipexperf.bench.stacks import _stock_int8

pytestmark = [
    pytest.mark.filterwarnings("ignore:torch.ao.quantization is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning:torch"),
]

FAR = 16
"""So much larger is one answer than the other."""


class Heads(torch.nn.Module):  # type: ignore[misc, name-defined, unused-ignore] # torch has no types here
    """A small answer and a large one, joined."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk = torch.nn.Linear(8, 16)
        self.heads = torch.nn.ModuleList([torch.nn.Linear(16, 4), torch.nn.Linear(16, 4)])
        with torch.no_grad():
            self.heads[1].weight *= FAR

    def forward(self, inputs: Any) -> Any:
        seen = self.trunk(inputs)
        return torch.cat([head(seen) for head in self.heads], 1)


@pytest.fixture(scope="module")
def known() -> tuple[Any, Any, Any]:
    """The network, what it is given, and its answers in fp32."""
    torch.manual_seed(0)
    network, inputs = Heads().eval(), torch.randn(256, 8)
    with torch.no_grad():
        return network, inputs, network(inputs)


def quantised(known: tuple[Any, Any, Any], *answers: str) -> tuple[Any, str]:
    """How far off the small answers are, on average, and what is told of it."""
    network, inputs, right = known
    bench: Any = SimpleNamespace(knob=lambda _: "static", model=SimpleNamespace(answers=answers))
    made = _stock_int8.quantise(network, (inputs,), [(inputs,)], bench)
    assert sum(type(module).__module__.startswith("torch.ao.nn.quantized") for module in made.network.modules()) >= 3
    return (made.network(inputs) - right)[:, :4].abs().mean(), made.recipe


def test_answers_that_are_joined_keep_a_scale_of_their_own(known: tuple[Any, Any, Any]) -> None:
    """With one scale for both, the small answers are lost in the steps of the large ones."""
    joined, recipe = quantised(known)
    apart, recipe_apart = quantised(known, "heads")
    assert apart < joined / 4
    assert (recipe, recipe_apart.removeprefix(recipe)) == ("engine x86, activations in 7 bits", ", answers in 8")


class Refuses:
    """A stack whose network quantises, and does not run."""

    def quantise(self, *_: Any) -> Any:
        return SimpleNamespace(network=self.run)

    def run(self, *_: Any) -> Any:
        raise RuntimeError("required rank 4")


def test_a_stock_int8_that_does_not_run_is_no_bound_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other stack has the dtype's own bound, and a note says why; stock itself fails."""
    network, refuses = torch.nn.Linear(4, 2).eval(), Refuses()
    examples = Examples((torch.randn(8, 4),), (torch.zeros(8, dtype=torch.long),))
    monkeypatch.setattr(artifact.weights, "network", lambda _: network)
    task = registry.tasks.get("classification")
    monkeypatch.setattr(artifact.registry, "stacks", SimpleNamespace(get=lambda _: refuses))

    def rounding(stack: Any) -> Any:
        model = SimpleNamespace(held_out=8)
        bench: Any = SimpleNamespace(task=task, model=model, stack=stack, laid_out=lambda value: value)
        return artifact._rounding(bench, Split(examples, examples), examples.inputs, [], refuses.run)

    reason = "RuntimeError: required rank 4"
    assert rounding("ipex") == {"rounding": None, "agreed": None, "no_rounding": reason}
    with pytest.raises(RuntimeError, match="rank 4"):
        rounding(refuses)
