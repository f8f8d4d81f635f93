"""The exceptions of every room, in one place so that rooms never import one another for them."""

from __future__ import annotations

from ipexperf.redaction import redacted

USAGE_ERROR = 2
"""The exit status of `ipexperf` for an error that is one sentence."""


class IpexperfError(Exception):
    """Base of all errors that ipexperf raises. None shows a secret, whatever text it is made of."""

    def __init__(self, *texts: str) -> None:
        super().__init__(*map(redacted, texts))


class UsageError(IpexperfError):
    """The request of the user cannot be met. One sentence: what, why, what instead. Exit code 4 (pytest) or 2 (CLI)."""


class LockError(UsageError):
    """A lock cannot be read, or its environment cannot be made."""


class AbsentError(UsageError):
    """There is no leaf, network or file of this name."""


class WorkerError(IpexperfError):
    """A launch ended without a measurement. `reason` begins with the arm to blame, if that has a name."""

    def __init__(self, outcome: str, detail: str, log: str = "", arm: str = "") -> None:
        self.outcome = outcome
        self.detail = redacted(detail)
        self.reason = f"{arm}: {self.detail}" if arm else self.detail
        self.log = log
        super().__init__(self.reason)


class ForkError(IpexperfError):
    """A worker cannot be forked, and is started fresh. The message is the reason."""


class BaselineError(IpexperfError):
    """A baseline file cannot be read, written or accepted into."""


class HistoryError(IpexperfError):
    """The database cannot be opened, is newer than this program, or lacks what was asked for."""
