"""What the tests of the conductor share."""

from __future__ import annotations

from typing import Any

import pytest

from ipexperf.conduct.worker import Worker


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a worker is asked, in that order."""
    found: list[str] = []
    ask = Worker.ask

    def watched(self: Worker, do: str, timeout: float | None = None, **request: Any) -> dict[str, Any]:
        found.append(do)
        return ask(self, do, timeout, **request)

    monkeypatch.setattr(Worker, "ask", watched)
    return found
