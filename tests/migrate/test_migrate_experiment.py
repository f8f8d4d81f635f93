"""How long a round of a migration takes is guessed from those before, of the same kind."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ipexperf.case import Case
from ipexperf.migrate.experiment import Experiment


def contest(mode: str, count: int) -> Any:
    cases = tuple(Case("resnet18", "cpu", "fp32", mode, "stock", batch, 32) for batch in range(1, count + 1))
    return SimpleNamespace(group=SimpleNamespace(cases=cases))


@pytest.mark.parametrize(
    ("known", "expected"),
    [({}, 0.0), ({0: 60.0}, 90.0), ({0: 60.0, 1: 900.0}, 90.0), ({1: 900.0}, 1350.0), ({0: 60.0, 2: 75.0}, 75.0)],
    ids=["nothing", "one of its kind", "trainings tell nothing", "only trainings", "itself"],
)
def test_a_round_takes_as_long_as_others_of_its_kind(known: dict[int, float], expected: float) -> None:
    """A round of BERT's trainings took 17 minutes on two cores, one of its inferences six."""
    experiment = Experiment((), 3, {}, None, lambda _: None)  # type: ignore[arg-type]
    experiment._runs = [contest("infer", 4), contest("train", 4), contest("infer", 6)]
    experiment._costs = known
    assert experiment._expected(experiment._runs[2]) == pytest.approx(expected)
