"""Indexes of packages: what they list, and which of PyTorch's or Intel's has a version.

Beside the usual index PyTorch has one for each kind of device, and as many for its nightly builds; Intel has some for
its extension. The local label of a version names it (`2.9.0+xpu`), so that a lock needs no address.
"""

from __future__ import annotations

import functools
import json
import os
import re
import urllib.error
import urllib.request
from collections.abc import Iterable
from dataclasses import dataclass
from html.parser import HTMLParser
from http import HTTPStatus
from pathlib import PurePosixPath
from urllib.parse import unquote, urlparse

from packaging import tags
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from ipexperf import lock as locks
from ipexperf.errors import UsageError
from ipexperf.variables import PYTORCH_INDEX

PYTORCH = "https://download.pytorch.org/whl"
INTEL = "https://pytorch-extension.intel.com/release-whl/stable/{}/us"
OF_INTEL = ("intel-extension-for-pytorch", "oneccl-bind-pt")
NIGHT = re.compile(r"\.dev(\d{4})(\d\d)(\d\d)")
SECONDS = 30.0
"""Time limit for an index to list the files of a package."""
JSON = "application/vnd.pypi.simple.v1+json"


@dataclass(frozen=True, slots=True)
class File:
    """A file that an index lists."""

    name: str
    date: str = ""
    """The date of its upload, or of the night that it was built in, if one of them is known."""
    yanked: bool = False


def of_label(label: str, *, nightly: bool) -> str:
    """The address of PyTorch's index for a kind of device, such as `xpu`."""
    base = os.environ.get(PYTORCH_INDEX) or PYTORCH
    return f"{base.rstrip('/')}/{'nightly/' if nightly else ''}{label}"


def of_packages(packages: Iterable[tuple[str, str]]) -> list[str]:
    """The indexes that these packages come from, each by name and version. Most come from the usual one alone."""
    found = []
    for name, version in packages:
        if label := locks.label_of(version):
            nightly = bool(NIGHT.search(version))
            found.append(INTEL.format(label) if name in OF_INTEL else of_label(label, nightly=nightly))
    return list(dict.fromkeys(found))


def version_for(wheel: str, package: str, python: str) -> Version | None:
    """The version in the name of a wheel, or None if it is of another package or does not fit this Python."""
    try:
        name, version, _, of_wheel = parse_wheel_filename(wheel)
    except (InvalidWheelFilename, InvalidVersion):
        return None  # an sdist, or a name that no installer takes either
    fits = name == canonicalize_name(package) and _tags(python) & of_wheel
    return version if fits else None


@functools.cache
def _tags(python: str) -> frozenset[tags.Tag]:
    series = [int(part) for part in locks.series(python)]
    return frozenset([*tags.cpython_tags(series), *tags.compatible_tags(series)])


def versions(url: str, package: str, python: str) -> dict[Version, str]:
    """The versions of a package with wheels for this Python in an index, oldest first, each with its date."""
    dates: dict[Version, str] = {}
    for file in files(url, package):
        version = version_for(file.name, package, python)
        if version is not None and not file.yanked:
            dates[version] = min(filter(None, (dates.get(version), file.date)), default="")
    return {version: dates[version] for version in sorted(dates)}


def files(url: str, package: str) -> list[File]:
    """Ask an index for the files of a package, in JSON (PEP 691) or as a plain page (PEP 503)."""
    if not url.startswith(("https://", "http://")):
        raise UsageError(f"{url}: expected the https address of an index")
    address = f"{url.rstrip('/')}/{canonicalize_name(package)}/"
    request = urllib.request.Request(address, headers={"Accept": f"{JSON}, text/html;q=0.5"})  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=SECONDS) as reply:  # noqa: S310 - the scheme was checked
            kind, text = reply.headers.get_content_type(), reply.read().decode()
        return _of_json(text) if kind == JSON else _of_page(text)
    except urllib.error.HTTPError as error:
        if error.code == HTTPStatus.NOT_FOUND:
            raise UsageError(f"the index has no package {package}") from None
        raise UsageError(f"no index answers at {address} ({error})") from None
    except OSError as error:  # urllib's own error is one
        raise UsageError(f"no index answers at {address} ({error})") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise UsageError(f"{address} is no list of files") from None


def _of_json(text: str) -> list[File]:
    answer = []
    for one in json.loads(text)["files"]:
        date = str(one.get("upload-time") or "")[:10] or _night(one["filename"])
        answer.append(File(one["filename"], date, bool(one.get("yanked"))))
    return answer


def night_of(version: str) -> str:
    """The date in the version of a nightly build, such as `20261120`, or an empty text."""
    night = NIGHT.search(version)
    return "".join(night.groups()) if night else ""


def _night(name: str) -> str:
    """The same in the name of a file, as dates are written."""
    night = NIGHT.search(name)
    return "-".join(night.groups()) if night else ""


class _Page(HTMLParser):
    """The links of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.files: list[File] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        if tag == "a" and (target := attributes.get("href")):
            name = unquote(PurePosixPath(urlparse(target).path).name)
            self.files.append(File(name, _night(name), "data-yanked" in attributes))


def _of_page(text: str) -> list[File]:
    page = _Page()
    page.feed(text)
    return page.files
