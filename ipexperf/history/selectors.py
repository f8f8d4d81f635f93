"""Selectors of runs: `last`, `last~3`, a day, a branch, or the beginning of a uid or commit."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from typing import Any

from sqlalchemy import Connection, Select, func, select

from ipexperf.errors import HistoryError
from ipexperf.history.schema import run
from ipexperf.history.statements import NEWEST_FIRST
from ipexperf.history.values import later, period_utc, since_utc

SHORTEST = 4
NEWEST = ("last", "latest", "newest")
OLDEST = ("first", "oldest")
DAYS = {"today": 0, "yesterday": 1}
"""Words for days, and how many days ago they were, in UTC."""
AHEAD = timedelta(hours=1)
"""How far the clock of another host may be ahead of ours."""
PERIOD, MOMENT = r"\d{4}-\d{2}(-\d{2})?", r"\d{4}-\d{2}-\d{2}[T ]\d{2}.*"


def resolve(connection: Connection, selector: str) -> str:
    """Return the uid of the run that a selector names: the last match, or with `~N` the N-th before it."""
    text = selector.strip()
    if connection.execute(select(run.c.uid).where(run.c.uid == text)).first():
        return text
    base, back = parts(text)
    rows = connection.execute(matches(connection, base, text).offset(back or 0).limit(1))
    uid = rows.scalar_one_or_none()
    return uid if uid is not None else unknown(connection, text)


def _refuse_future(connection: Connection, text: str) -> None:
    """Raise HistoryError if the newest run began in the future: it would hide every run of the days until then."""
    ahead = (datetime.now(timezone.utc) + AHEAD).isoformat(timespec="microseconds")
    begun = select(run.c.uid, run.c.started_at).order_by(*NEWEST_FIRST).limit(1)
    newest = connection.execute(begun.where(run.c.started_at > ahead)).first()
    if newest is None:
        return
    before = connection.execute(begun.where(run.c.started_at <= ahead)).scalar()
    advice = f"name the run until then, such as {before}, the newest before it" if before else "name the run until then"
    raise HistoryError(
        f"{text!r} is not clear: run {newest[0]} began at {newest[1]}, in the future, as a wrong clock said; {advice}."
    )


def parts(text: str) -> tuple[str, int | None]:
    """Return what a selector names, and how many runs before that it goes back. None: it does not say."""
    match = re.fullmatch(r"(.*?)(?:~(\d{0,9})|(\^+))?", text, re.DOTALL)
    assert match is not None  # noqa: S101 - the first part matches anything
    return match[1], len(match[3]) if match[3] else int(match[2] or 1) if match[2] is not None else None


def moment(connection: Connection, text: str) -> str:
    """Return the beginning of a date, moment or run, in UTC."""
    text = text.strip()
    if span := _days(text):
        return span[0]
    if re.fullmatch(MOMENT, text):
        return since_utc(text)
    begun = select(run.c.started_at).where(run.c.uid == resolve(connection, text))
    return str(connection.execute(begun).scalar_one())


def after(connection: Connection, text: str) -> str:
    """Return the first moment after a date, moment or run."""
    if span := _days(text.strip()):
        return span[1]
    last = datetime.fromisoformat(moment(connection, text))
    return later(last, timedelta(microseconds=1)).isoformat(timespec="microseconds")


def between(connection: Connection, since: str | None, until: str | None) -> dict[str, str | None]:
    """Return the first moment of a range and the first after it. Raise HistoryError if it ends before it begins."""
    begin = moment(connection, since) if since is not None else None
    end = after(connection, until) if until is not None else None
    if begin is not None and end is not None and end <= begin:
        raise HistoryError(f"the range is upside down: it is until {until!r}, which is before {since!r}.")
    return {"since": begin, "before": end}


def check_begun(connection: Connection) -> None:
    """Raise HistoryError if the history has no runs."""
    if not connection.execute(select(run.c.id).limit(1)).first():
        raise HistoryError("this history is empty: run the suite first.")


def matches(connection: Connection, base: str, text: str) -> Select[Any]:
    """Select all runs that a selector matches, the best match first."""
    runs = select(run.c.uid).order_by(*NEWEST_FIRST)
    if base in NEWEST:
        _refuse_future(connection, text)
        return runs
    if base in OLDEST:
        # Nothing is before the first run, so only `first` itself finds one.
        return runs.where(
            run.c.uid == select(run.c.uid).order_by(run.c.started_at, run.c.uid).limit(1).scalar_subquery()
        )
    if span := _days(base):
        return runs.where(run.c.started_at >= span[0], run.c.started_at < span[1])
    if re.fullmatch(MOMENT, base):
        return runs.where(run.c.started_at <= since_utc(base))
    return _named(connection, base, text)


def _named(connection: Connection, base: str, text: str) -> Select[Any]:
    """Select the runs of a branch or commit, or the run whose uid begins with the text."""
    runs = select(run.c.uid).order_by(*NEWEST_FIRST)
    of_branch = run.c.branch == base
    branch = connection.execute(select(run.c.branch).where(of_branch).limit(1)).scalar_one_or_none()
    if branch is None and len(base) < SHORTEST:
        raise HistoryError(f"{text!r} is too short to name a run: give at least {SHORTEST} characters, or `last`.")
    start = base.lower()
    long = len(base) >= SHORTEST
    of_commit = run.c.commit_sha.startswith(start, autoescape=True)
    of_uid = run.c.uid.startswith(start, autoescape=True)
    uids = connection.scalars(select(run.c.uid).where(of_uid).limit(5)).all() if long else ()
    commits = connection.scalars(select(run.c.commit_sha).where(of_commit).distinct().limit(5)).all() if long else ()
    candidates = [*uids, *(f"commit {commit}" for commit in commits)]
    if branch is not None:
        candidates.append(f"branch {branch}")
    if len(candidates) > 1:
        raise HistoryError(f"{text!r} is ambiguous: it begins {', '.join(candidates)}.")
    if not candidates:
        unknown(connection, text)
    return runs.where(of_branch if branch is not None else of_commit if commits else of_uid)


def _days(text: str) -> tuple[str, str] | None:
    """Return the first moment of a day or a month, and of the next. None: the text names neither."""
    if text in DAYS:
        text = (datetime.now(timezone.utc) - timedelta(days=DAYS[text])).date().isoformat()
    return period_utc(text) if re.fullmatch(PERIOD, text) else None


def unknown(connection: Connection, text: str) -> str:
    count = connection.execute(select(func.count()).select_from(run)).scalar_one()
    if not count:
        raise HistoryError(f"no run matches {text!r}: this history is empty.")
    newest = connection.scalars(select(run.c.uid).order_by(*NEWEST_FIRST).limit(1)).one()
    raise HistoryError(f"no run matches {text!r}: the newest of {count} is {newest}; `ipexperf show` lists them.")
