"""Where a history is: the path of a file, or the URL of a server, which is never told with its password."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from ipexperf.errors import HistoryError

if TYPE_CHECKING:
    from sqlalchemy.engine import URL

HIDDEN = "***"
POSTGRESQL = {"postgresql", "postgres"}
"""As people write it, without a driver: ours is psycopg, of the extra `postgresql`."""


def url_of(target: str | os.PathLike[str]) -> URL:
    """Read a path or a URL; what is neither is refused."""
    from sqlalchemy.engine import URL, make_url
    from sqlalchemy.exc import ArgumentError

    text = os.fspath(target)
    if "://" not in text:
        return URL.create("sqlite", database=text)
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):  # the latter for a port that is no number
        raise HistoryError(f"{hidden(text)!r} is no path and no database URL.") from None
    return url.set(drivername="postgresql+psycopg") if url.drivername in POSTGRESQL else url


def file_of(target: str | os.PathLike[str]) -> Path | None:
    """Return the file of SQLite that a target names; any other database has none."""
    url = url_of(target)
    if url.get_backend_name() != "sqlite" or url.database in {None, ":memory:"}:
        return None
    return Path(str(url.database))


def hidden(text: str) -> str:
    """A text in which a URL may be, without the password that may be in it."""
    text = re.sub(r"(://[^:/@\s]*):.*@", rf"\1:{HIDDEN}@", text)
    return re.sub(r"([?&]\w*password=)[^&\s]*", rf"\1{HIDDEN}", text)
