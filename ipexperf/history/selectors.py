"""How people name a run: `last`, `last~3`, a date, or the beginning of its uid or of a commit."""

from __future__ import annotations

import re

from sqlalchemy import Connection, func, select

from ipexperf.errors import HistoryError
from ipexperf.history.schema import run
from ipexperf.history.values import day_utc

SHORTEST = 4
_NEWEST = (run.c.started_at.desc(), run.c.uid.desc())


def resolve(connection: Connection, selector: str) -> str:
    """Return the uid of the one run that is meant; a date or a commit means its last run."""
    text = selector.strip()
    if connection.execute(select(run.c.uid).where(run.c.uid == text)).first():
        return text
    if match := re.fullmatch(r"last(?:~(\d{1,9}))?", text):
        found = select(run.c.uid).order_by(*_NEWEST).offset(int(match[1] or 0)).limit(1)
    elif re.fullmatch(r"\d{4}-\d{2}-\d{2}", text):
        first, after = day_utc(text)
        within = (run.c.started_at >= first, run.c.started_at < after)
        found = select(run.c.uid).where(*within).order_by(*_NEWEST).limit(1)
    elif len(text) < SHORTEST:
        raise HistoryError(f"{text!r} is too short to name a run: give at least {SHORTEST} characters, or `last`.")
    else:
        return _by_prefix(connection, text)
    uid = connection.execute(found).scalar_one_or_none()
    return uid if uid is not None else _unknown(connection, text)


def _by_prefix(connection: Connection, text: str) -> str:
    uids = connection.scalars(select(run.c.uid).where(run.c.uid.startswith(text, autoescape=True)).limit(5)).all()
    beginning = run.c.commit_sha.startswith(text, autoescape=True)
    commits = connection.scalars(select(run.c.commit_sha).where(beginning).distinct().limit(5)).all()
    candidates = [*uids, *(f"commit {commit}" for commit in commits)]
    if len(candidates) > 1:
        raise HistoryError(f"{text!r} is ambiguous: it begins {', '.join(candidates)}.")
    if commits:
        return str(connection.scalars(select(run.c.uid).where(beginning).order_by(*_NEWEST).limit(1)).one())
    return uids[0] if uids else _unknown(connection, text)


def _unknown(connection: Connection, text: str) -> str:
    count = connection.execute(select(func.count()).select_from(run)).scalar_one()
    if not count:
        raise HistoryError(f"no run matches {text!r}: this history is empty.")
    newest = connection.scalars(select(run.c.uid).order_by(*_NEWEST).limit(3)).all()
    raise HistoryError(f"no run matches {text!r}: this history has {count}, the newest are {', '.join(newest)}.")
