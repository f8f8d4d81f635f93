"""Environments and checkouts that the tests make themselves, by pip. Nothing is downloaded."""

import csv
import os
import resource
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ipexperf.bench.machine.inventory import Package, _packages

BACKEND = """
import base64, hashlib, zipfile
from pathlib import Path

NAME, VERSION = "pace", "{version}"

def _wheel(folder, files):
    info = f"{{NAME}}-{{VERSION}}.dist-info"
    files[f"{{info}}/METADATA"] = f"Metadata-Version: 2.1\\nName: {{NAME}}\\nVersion: {{VERSION}}\\n"
    files[f"{{info}}/WHEEL"] = "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n"
    record = f"{{info}}/RECORD,,\\n"
    for name, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        record += f"{{name}},sha256={{digest}},{{len(text)}}\\n"
    path = f"{{NAME}}-{{VERSION}}-py3-none-any.whl"
    with zipfile.ZipFile(Path(folder, path), "w") as wheel:
        for name, text in {{**files, f"{{info}}/RECORD": record}}.items():
            wheel.writestr(zipfile.ZipInfo(name), text)
    return path

def build_wheel(folder, config_settings=None, metadata_directory=None):
    return _wheel(folder, {{"pace.py": Path("pace.py").read_text()}})

def build_editable(folder, config_settings=None, metadata_directory=None):
    return _wheel(folder, {{"pace.pth": str(Path.cwd()) + "\\n"}})
"""
"""A build backend of the checkout's own, so that no test needs an installed one."""


def an_environment(folder: Path, *requirements: str | Path) -> Path:
    """A virtual environment with these wheels, installed by pip, and nothing else."""
    venv.create(folder, symlinks=True)
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python"), "install", "--quiet"]
    options = ["--no-index", "--no-deps", "--no-build-isolation", "--disable-pip-version-check"]
    if requirements:
        subprocess.run([*pip, *options, *map(str, requirements)], check=True, capture_output=True)
    return folder


def a_checkout(folder: Path, version: str = "1.0") -> Path:
    """The source of a package, with a build backend."""
    folder.mkdir(exist_ok=True)
    project = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    (folder / "pyproject.toml").write_text(project)
    (folder / "backend.py").write_text(BACKEND.format(version=version))
    # Written twice in a second, a file of the same size looks to Python as if it were compiled already.
    shutil.rmtree(folder / "__pycache__", ignore_errors=True)
    (folder / "pace.py").write_text("TIMES = 1\n")
    return folder


def packages_folder(environment: Path) -> Path:
    """The folder of an environment's packages."""
    [folder] = (environment / "lib").glob("python3*/site-packages")
    return folder


def package_in(environment: Path, name: str = "pace") -> Package:
    """The package with this name, as the inventory of the environment's interpreter has it."""
    [package] = [one for one in _packages(packages_folder(environment)) if one.name == name]
    return package


def installed_files(environment: Path, name: str = "pace") -> dict[str, tuple[bytes, bool]]:
    """The files that an installer wrote of a package, with their content and whether they are executable.

    The files that describe the installation are left out, and so is the path of the environment.
    """
    folder = packages_folder(environment)
    [record] = [path for path in folder.glob("*.dist-info/RECORD") if path.parent.name.startswith(f"{name}-")]
    files = {}
    for row in csv.reader(record.read_text().splitlines()):
        path = folder / row[0]
        if (
            path.name not in {"RECORD", "direct_url.json", "INSTALLER", "REQUESTED", "uv_cache.json"}
            and path.suffix != ".pyc"
        ):
            content = path.read_bytes().replace(os.fsencode(environment), b"ENVIRONMENT")
            files[row[0]] = (content, os.access(path, os.X_OK))
    return files


@contextmanager
def a_full_disk(after: int) -> Iterator[None]:
    """Let no file of this process become longer, as on a disk with this much left. The error is another, EFBIG."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (after, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
