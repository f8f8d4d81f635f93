"""The address of a history: the path of a file, or the URL of a server."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from ipexperf.errors import HistoryError
from ipexperf.redaction import redacted

if TYPE_CHECKING:
    from sqlalchemy.engine import URL

POSTGRESQL = {"postgresql", "postgres"}
"""URL schemes without a driver. The driver is psycopg, from the extra `postgresql`."""


def url_of(target: str | os.PathLike[str]) -> URL:
    """Parse a path or a URL. Raise HistoryError if it is neither."""
    from sqlalchemy.engine import URL, make_url
    from sqlalchemy.exc import ArgumentError

    text = os.fspath(target)
    if "://" not in text:
        return URL.create("sqlite", database=text)
    if not text.startswith("sqlite") and text.partition("?")[0].count("@") > 1:
        # SQLAlchemy would take the rest of the password for the host, and the driver would print it.
        raise HistoryError(f"{text!r} has more than one '@': write those of the user and password as %40.")
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):  # ValueError: the port is not a number
        raise HistoryError(f"{text!r} is neither a path nor a database URL.") from None
    return url.set(drivername="postgresql+psycopg") if url.drivername in POSTGRESQL else url


def file_of(target: str | os.PathLike[str]) -> Path | None:
    """Return the SQLite file of an address, or None for any other database."""
    url = url_of(target)
    if url.get_backend_name() != "sqlite" or url.database in {None, ":memory:"}:
        return None
    return Path(str(url.database))


def check_local(target: str) -> None:
    """Refuse a server as the place of a run: what is measured must not depend on a network."""
    if url_of(target).get_backend_name() != "sqlite":
        advice = "write to a file of this host, and copy it to the server with `ipexperf db push URL`"
        raise HistoryError(f"a run cannot write to the history {redacted(target)}: {advice}.")
