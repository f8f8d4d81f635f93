"""What we use of pytest's private parts, where it has nothing public. If an update of pytest breaks us, look here."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import pytest
from _pytest.runner import runtestprotocol


def definitions(test: pytest.Metafunc | pytest.Item, fixture: str) -> Sequence[Any]:
    """Return the definitions of a fixture that a test function sees. The last one is the one that the test gets."""
    if isinstance(test, pytest.Metafunc):
        return test._arg2fixturedefs.get(fixture, ())  # noqa: SLF001
    info = getattr(test, "_fixtureinfo", None)  # a doctest, for one, has none
    return info.name2fixturedefs.get(fixture, ()) if info else ()


@functools.cache
def mark(name: str) -> pytest.Mark:
    """Return a mark with any name. `pytest.mark` refuses names such as `_private`, which a model may have."""
    return pytest.Mark(name, (), {}, _ispytest=True)


def run_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> list[pytest.TestReport]:
    """Run setup, call and teardown of a test without reporting them. Plugins that rerun tests do the same."""
    return runtestprotocol(item, log=False, nextitem=nextitem)
