"""The schema of the first release. `schema.py` makes a new history; later revisions change those that there are."""

from __future__ import annotations

revision = "0006"
down_revision: str | None = None


def upgrade() -> None:
    """Nothing: no history is older."""
