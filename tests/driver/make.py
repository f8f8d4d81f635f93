"""Make a folder with Intel's driver for GPUs and SYCL, for tests on a machine without a card. Needs Debian, as root.

    python tests/driver/make.py .driver

The driver and what it needs come from Debian's next release, unpacked beside the system, SYCL from PyPI: 1.2 GB.
The driver is in `latest`. `former` has that of Ubuntu 26.04, to compare it with.
`bin/python` in the folder is this Python under that release's loader, so that the driver finds its own libraries.
"""

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

DRIVER = ("libze-intel-gpu1", "libigc2", "libigdgmm12")
SYSTEM = ("libze1", "libdrm2", "libc6", "libstdc++6", "libgcc-s1", "zlib1g")
SYCL = (
    "dpctl==0.22.*",
    "intel-sycl-rt",
    "intel-cmplr-lib-ur",
    "intel-cmplr-lib-rt",
    "umf",
    "tcmlib",
    "intel-pti",
    "numpy",
)
DEBIAN = "http://deb.debian.org/debian sid main"
UBUNTU = "http://archive.ubuntu.com/ubuntu resolute main universe"
LIBRARIES = "usr/lib/x86_64-linux-gnu"
KEYS = "usr/share/keyrings/{}-archive-keyring.gpg"
WRAPPER = """#!/bin/sh
libraries={folder}/root/{libraries}
path="${{LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}}$libraries:{folder}/lib:{folder}/latest/{libraries}"
exec "$libraries/ld-linux-x86-64.so.2" --library-path "$path" --argv0 "$0" "{python}" "$@"
"""


def unpack(folder: Path, archive: str, keys: Path, packages: Sequence[str]) -> None:
    """Unpack packages of an archive, signed with these keys, into this folder."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        for inner in ("state/lists/partial", "cache/archives/partial"):
            (place / inner).mkdir(parents=True)
        (place / "list").write_text(f"deb [signed-by={keys}] {archive}\n")
        own = {"Etc::sourcelist": "list", "State": "state", "Cache": "cache"}
        options = [f"-oDir::{key}={place / value}" for key, value in own.items()]
        options += ["-oDir::Etc::sourceparts=-", "-oAPT::Sandbox::User=root", "-oAcquire::Languages=none"]
        subprocess.run(["apt-get", "-q", *options, "update"], check=True)
        subprocess.run(["apt-get", "-q", *options, "download", *packages], check=True, cwd=place)
        for package in place.glob("*.deb"):
            subprocess.run(["dpkg", "-x", package, folder], check=True)


def main() -> None:
    folder = Path(sys.argv[1]).absolute()
    python = folder / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", "--clear", "--without-pip", folder], check=True)
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "-q", "--no-deps", "--only-binary", ":all:"]
    subprocess.run([*pip, *SYCL], check=True)
    keys = Path("/", KEYS.format("debian"))
    unpack(folder / "root", DEBIAN, keys, (*SYSTEM, "ubuntu-keyring"))
    unpack(folder / "latest", DEBIAN, keys, DRIVER)
    unpack(folder / "former", UBUNTU, folder / "root" / KEYS.format("ubuntu"), DRIVER)
    python.unlink()
    base = Path(sys._base_executable).resolve()  # type: ignore[attr-defined]
    python.write_text(WRAPPER.format(folder=folder, libraries=LIBRARIES, python=base))
    python.chmod(0o755)


if __name__ == "__main__":
    main()
