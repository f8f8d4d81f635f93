"""An invocation with several runs closes all of them, and says why it cannot have them."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path
from typing import Any

import pytest

from ipexperf.errors import UsageError
from ipexperf.invocation import Elsewhere, Invocation
from ipexperf.plan.options import Options


class Part:
    """A run, or a cluster, that notes that it was closed and may raise."""

    def __init__(self, closed: list[str], name: str, error: BaseException | None = None) -> None:
        self._closed, self._name, self._error = closed, name, error

    def finish(self, status: str) -> bool:
        self._closed.append(f"{self._name} {status}")
        if self._error is not None:
            raise self._error
        return True

    def close(self) -> None:
        self._closed.append(self._name)


def invocation(closed: list[str], **errors: BaseException | None) -> Any:
    one: Any = Invocation.__new__(Invocation)
    one.runs = {name: Part(closed, name, error) for name, error in errors.items()}
    one._elsewhere = Elsewhere(one.runs, {}, Part(closed, "cluster").close)
    return one


@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("the disk is full")])
def test_an_error_in_closing_one_run_leaves_no_other_open(error: BaseException) -> None:
    closed: list[str] = []
    with pytest.raises(type(error)):
        invocation(closed, a=error, b=None, c=None).finish("finished")
    assert closed == ["a finished", "b finished", "c finished", "cluster"]


def test_an_invocation_is_fine_if_every_run_is() -> None:
    closed: list[str] = []
    assert invocation(closed, a=None, b=None).finish("finished")
    assert closed == ["a finished", "b finished", "cluster"]


def test_without_a_package_that_measures_on_a_fleet_the_option_ends_with_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fleet is a tool: the core knows it by an entry point alone."""
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda **_: ())
    options = Options(fleet="local:a,b", sources={"fleet": "--perf-fleet"})
    with pytest.raises(UsageError) as refused:
        Invocation(options, tmp_path, lambda _: None)
    assert str(refused.value).startswith("--perf-fleet: no installed package measures on a fleet: ")
