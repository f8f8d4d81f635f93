"""The order in which a migration measures: the times of every row first, then accuracies that take minutes."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import migrate_records
import pytest
from free_machine import FREE, Clock

from ipexperf.compare import together
from ipexperf.compare.arm import Arm
from ipexperf.compare.round import Effort, Round, Side
from ipexperf.conduct.conductor import Conductor
from ipexperf.plan.options import Options
from ipexperf.result import Check, Launch, Measurement, Sample
from ipexperf.tools.migrate.experiment import Experiment

pytestmark = pytest.mark.process  # a run asks git for the commit that it measures

TO_THE_END = 66
"""The steps of a training of `tiny`."""
STEP = 1.0
"""The seconds of a step."""
ROUND = 10.0
"""The seconds of a round whose arms are not trained to the end."""


class Nothing:
    """A recorder that keeps nothing."""

    def so_far(self, cases: Any, rounds: Any) -> None:
        del cases, rounds

    def add_rounds(self, records: Any) -> None:
        del records

    def case(self, *found: Any) -> None:
        del found


class Trial:
    """A migration of `tiny`, and its rounds, which take time on a clock of their own."""

    def __init__(self, budget: float, folder: Path, fakes: tuple[str, ...], launches: int = 2) -> None:
        self.asked: list[list[Arm]] = []
        """The arms of every round."""
        self._clock = Clock()
        options = Options(load=fakes, budget=budget, lease="off")
        conductor = Conductor(options, folder, lambda _: None, policy=FREE, clock=self._clock)
        together.play = self.play  # type: ignore[assignment]
        plan = migrate_records.plan()
        self.off = [setting.off for setting in plan.settings]
        self.experiment = Experiment(plan, launches, {}, conductor, lambda _: None, clock=self._clock)

    def play(self, arms: Sequence[Arm], effort: Effort, chance: random.Random, say: Callable[[str], None]) -> Round:
        del effort, chance, say
        self.asked.append(list(arms))
        self._clock.now += ROUND
        return Round(tuple(self._side(arm) for arm in arms), "together", migrate_records.AT, turns=1, seconds=ROUND)

    def _side(self, arm: Arm) -> Side:
        if arm.accuracy and arm.case.mode == "teach":
            self._clock.now += TO_THE_END * STEP
        done = (Check("learned", ok=True, found="1", expected="1"),) if arm.accuracy else ()
        samples = (Sample(STEP, STEP, 0.0),)
        one = Launch(arm.index, "ok", samples=samples, metrics={"step_time": STEP}, accuracy=done)
        return Side(arm, one, migrate_records.WHERE, ((STEP,),))

    def run(self) -> list[Measurement]:
        self.experiment.run(Nothing())  # type: ignore[arg-type]
        return self.experiment.finish(Nothing())  # type: ignore[arg-type]

    @property
    def order(self) -> list[str]:
        """The rounds in their order, with `to the end` after those that train to the end."""
        return [
            arms[0].case.mode + (" to the end" if arms[0].accuracy and arms[0].case.mode == "teach" else "")
            for arms in self.asked
        ]


@pytest.fixture
def fakes(registries: None, fake: str, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    del registries
    monkeypatch.setattr(together, "play", together.play)  # puts back what a trial uses in its place
    return (fake, str(Path(__file__).parents[2] / "fakes" / "movers.py"))


def test_every_row_is_timed_before_a_training_is_trained_to_the_end(tmp_path: Path, fakes: tuple[str, ...]) -> None:
    trial = Trial(1e6, tmp_path, fakes)
    trial.run()
    assert trial.order == ["spin", "teach", "teach", "teach to the end", "teach to the end", "spin"]


def test_a_training_that_has_no_time_for_its_accuracy_has_its_times(tmp_path: Path, fakes: tuple[str, ...]) -> None:
    """The rest of the budget is for more rounds, which fit."""
    trial = Trial(6 * ROUND + 1, tmp_path, fakes)
    found = {one.case.mode: one for one in trial.run()}
    assert trial.order == ["spin", "teach", "teach", "spin", "teach", "teach"]
    assert [one.outcome for one in found["teach"].launches] == ["ok", "ok"]
    assert not any(one.accuracy for one in found["teach"].launches)
    assert any(one.accuracy for one in found["spin"].launches)


def test_a_case_without_a_setting_is_only_timed(tmp_path: Path, fakes: tuple[str, ...]) -> None:
    """It shows the effect of the setting. Its accuracy is not needed."""
    trial = Trial(1e6, tmp_path, fakes)
    trial.run()
    assert trial.off
    scored = {arm.case for arms in trial.asked for arm in arms if arm.accuracy}
    assert scored
    assert not scored & set(trial.off)


def test_a_single_round_trains_to_the_end_at_once(tmp_path: Path, fakes: tuple[str, ...]) -> None:
    """With `--perf-launches 1` there is no later round."""
    trial = Trial(1e6, tmp_path, fakes, launches=1)
    trial.run()
    assert trial.order == ["spin", "teach to the end", "teach to the end"]
