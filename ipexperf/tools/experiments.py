"""What the tools that measure share: verdicts without a baseline, and how a run of theirs ends in the history."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ipexperf.judge import screen
from ipexperf.judge.policy import Policy

if TYPE_CHECKING:
    from ipexperf.history.store import Status
    from ipexperf.recorder import Recorder
    from ipexperf.result import Measurement, Verdict

POLICY = Policy()
"""Experiments have no baseline. The policy only decides which cases are failed or invalid."""


def judged(measured: Measurement) -> Verdict:
    """The verdict on a case without a baseline: only failed and invalid matter."""
    return screen.judge(measured, None, POLICY)


@contextlib.contextmanager
def recorded(recorder: Recorder) -> Iterator[Recorder]:
    """Record that the run ended as the block does: finished, interrupted by Ctrl-C, or failed. Close the history."""
    status: Status = "failed"
    try:
        yield recorder
        status = "finished"
    except KeyboardInterrupt:
        status = "interrupted"
        raise
    finally:
        recorder.finish(status)
        recorder.close()
