"""What the tests of comparisons watch."""

from collections.abc import Iterator
from typing import Any

import pytest
from compare_play import Sent

from ipexperf.compare import together
from ipexperf.conduct.worker import Worker


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Sent:
    """What is sent to workers."""
    found = Sent()
    send = Worker.send

    def watched(self: Worker, do: str, **request: Any) -> None:
        if do == "begin":
            found.names[self.pid] = request["case"]["dtype"]
        earlier = sum(pid == self.pid and sent == do for pid, sent, _ in found.requests)
        found.requests.append((self.pid, do, request))
        found.before(found.names.get(self.pid, ""), do, earlier, self.pid)
        send(self, do, **request)

    monkeypatch.setattr(Worker, "send", watched)
    return found


@pytest.fixture
def alive(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """How many workers were alive whenever another one was started."""
    now: list[int] = []
    counts: list[int] = []
    begin, end = Worker.__init__, Worker.__exit__

    def begun(self: Worker, *told: Any, **more: Any) -> None:
        begin(self, *told, **more)
        now.append(self.pid)
        counts.append(len(now))

    def ended(self: Worker, *error: Any) -> None:
        end(self, *error)
        now.remove(self.pid)

    monkeypatch.setattr(Worker, "__init__", begun)
    monkeypatch.setattr(Worker, "__exit__", ended)
    yield counts
    assert now == []


@pytest.fixture(autouse=True)
def honest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Puts back what a test uses in the place of real rounds."""
    monkeypatch.setattr(together, "play", together.play)
