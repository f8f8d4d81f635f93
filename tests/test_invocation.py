"""An invocation with several runs closes all of them."""

from __future__ import annotations

from typing import Any

import pytest

from ipexperf.invocation import Elsewhere, Invocation


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
