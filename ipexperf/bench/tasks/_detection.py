"""What all detection has in common: how its boxes are judged."""

from __future__ import annotations

from abc import abstractmethod

from ipexperf.bench.subjects import Split, Task, Tensors
from ipexperf.bench.tasks import _boxes
from ipexperf.bench.tasks._boxes import Found

SURE = 0.5
"""A box that is at least so sure is a decision; mean precision looks at less sure ones as well."""


class Boxes(Task):
    """Things found by the boxes around them, whatever a network answers to tell of them."""

    metric = "mean average precision of boxes that overlap by half"

    @abstractmethod
    def found(self, outputs: Tensors) -> list[Found]:
        """What the answers say was found in each example, on the CPU."""

    def agreement(self, outputs: Tensors, known: Tensors) -> float:
        mine, yours = ([one.surer(SURE) for one in self.found(part)] for part in (outputs, known))
        return _boxes.agreement(mine, yours)

    def score(self, outputs: Tensors, targets: Tensors) -> float:
        return _boxes.mean_precision(self.found(outputs), *targets)

    def trivial(self, split: Split) -> float:
        """The same boxes in every scene find next to nothing."""
        del split
        return 0.0
