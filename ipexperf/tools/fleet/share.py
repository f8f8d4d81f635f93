"""A plugin of pytest for a host that measures a share: it leaves the groups of the other hosts out."""

from __future__ import annotations

import json
import os

import pytest

from ipexperf.case import Case
from ipexperf.plan import groups
from ipexperf.tools.fleet import hosts
from ipexperf.tools.fleet.host_side import SHARE

ELSEWHERE: pytest.StashKey[bool] = pytest.StashKey()
"""Whether another host has tests of this session."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests whose groups are other hosts'."""
    host, names = json.loads(os.environ[SHARE])
    whose = {item: hosts.of_group(names, _group(item)) for item in items}
    if theirs := [item for item in items if whose[item] != host]:
        config.stash[ELSEWHERE] = True
        config.hook.pytest_deselected(items=theirs)
        items[:] = [item for item in items if whose[item] == host]


def _group(item: pytest.Item) -> str:
    """Cases that are compared stay together."""
    case = getattr(getattr(item, "callspec", None), "params", {}).get("perf")
    return groups.name(case) if isinstance(case, Case) else item.nodeid


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Nothing to do for this host is no error."""
    if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and ELSEWHERE in session.config.stash:
        session.exitstatus = pytest.ExitCode.OK
