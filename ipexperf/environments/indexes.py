"""Indexes of packages: what they list, and which of PyTorch's or Intel's has a version.

Beside the usual index PyTorch has one for each kind of device, and as many for its nightly builds; Intel has some for
its extension. The local label of a version names it (`2.9.0+xpu`), so that a lock needs no address.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable

from packaging.version import Version

from ipexperf import lock as locks
from ipexperf.errors import UsageError
from ipexperf.redaction import redacted
from ipexperf.variables import PYTORCH_INDEX

PYTORCH = "https://download.pytorch.org/whl"
INTEL = "https://pytorch-extension.intel.com/release-whl/stable/{}/us"
OF_INTEL = ("intel-extension-for-pytorch", "oneccl-bind-pt")
NIGHT = re.compile(r"\.dev(\d{8})")


def of_label(label: str, *, nightly: bool) -> str:
    """The address of PyTorch's index for a kind of device, such as `xpu`."""
    base = os.environ.get(PYTORCH_INDEX) or PYTORCH
    return f"{base.rstrip('/')}/{'nightly/' if nightly else ''}{label}"


def of_packages(packages: Iterable[tuple[str, str]]) -> list[str]:
    """The indexes that these packages come from, each by name and version. Most come from the usual one alone."""
    addresses = []
    for name, version in packages:
        if label := locks.label_of(version):
            nightly = bool(NIGHT.search(version))
            addresses.append(INTEL.format(label) if name in OF_INTEL else of_label(label, nightly=nightly))
    return list(dict.fromkeys(addresses))


def versions(package: str, python: str, url: str = "") -> list[Version]:
    """Ask pip which versions of a package have wheels for this Python in an index, oldest first.

    `url`: in place of the index that pip is set to ask. uv has no command for it.
    """
    series = ".".join(locks.series(python))
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pip", "index", "versions", package, "--pre", "--python-version", series),
            *("--only-binary", ":all:", "--retries", "1", "--disable-pip-version-check"),
        ],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        env=dict(os.environ) | ({"PIP_INDEX_URL": url} if url else {}),  # it may hold a password
    )
    if listed := re.search(r"^Available versions: (.+)$", done.stdout, re.MULTILINE):
        return sorted(Version(version) for version in listed[1].split(", "))
    where = f" at {redacted(url)}" if url else ""
    raise UsageError(f"no index{where} answers with wheels of {package} for Python {series}")


def night_of(version: str) -> str:
    """The date in the version of a nightly build, such as `20261120`, or an empty text."""
    night = NIGHT.search(version)
    return night[1] if night else ""
