"""What the tests of the conductor share."""

from __future__ import annotations

from typing import Any

import pytest

from ipexperf.conduct.worker import Worker


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a worker is asked, in that order."""
    found: list[str] = []
    send = Worker.send

    def watched(self: Worker, do: str, **request: Any) -> None:
        found.append(do)
        send(self, do, **request)

    monkeypatch.setattr(Worker, "send", watched)
    return found
