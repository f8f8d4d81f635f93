"""Wheels made of what is installed, and the store that keeps them by content."""

from __future__ import annotations

import dataclasses
import zipfile
from pathlib import Path

import pytest
from small_wheels import a_wheel, an_environment

from ipexperf.bench.machine.inventory import Package
from ipexperf.environments import make, wheels
from ipexperf.environments.store import Store
from ipexperf.errors import LockError

pytestmark = pytest.mark.process

FILES = {
    "pace/__init__.py": "TIMES = 1\n",
    "pace/deep/native.so": "\x7fELF not really\n" * 10,
    "spaces/with, comma.txt": "quoted in RECORD\n",
    "pace-1.0.data/scripts/pace-run": "#!python\nprint('run')\n",
    "pace-1.0.data/data/lib/libpace.so.1": "a library beside the packages\n",
    "pace-1.0.data/data/share/pace/data.txt": "data\n",
    "pace-1.0.dist-info/entry_points.txt": "[console_scripts]\npace = pace:main\n",
}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Package:
    folder = tmp_path_factory.mktemp("installed")
    return of(an_environment(folder / "env", a_wheel(folder, "pace", "1.0", FILES)))


def of(python: str) -> Package:
    [package] = [one for one in make.take_inventory(python).packages if one.name == "pace"]
    return package


def test_a_repacked_wheel_installs_the_same_content_elsewhere(installed: Package, tmp_path: Path) -> None:
    wheel = wheels.repack(installed, tmp_path)
    assert wheel.name == "pace-1.0-py2.py3-none-any.whl"
    python = an_environment(tmp_path / "env", wheel)
    again = of(python)
    assert (again.content, again.version) == (installed.content, "1.0")
    assert (tmp_path / "env/lib/libpace.so.1").read_text() == "a library beside the packages\n"
    assert (tmp_path / "env/share/pace/data.txt").read_text() == "data\n"


def test_the_same_files_make_the_same_wheel(installed: Package, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    first, second = wheels.repack(installed, tmp_path), wheels.repack(installed, tmp_path / "other")
    assert first.read_bytes() == second.read_bytes()
    assert not [name for name in zipfile.ZipFile(first).namelist() if name.endswith(("INSTALLER", "direct_url.json"))]


def test_a_file_that_was_edited_after_the_installation_is_refused(tmp_path: Path) -> None:
    package = of(an_environment(tmp_path / "env", a_wheel(tmp_path, "pace", "1.0", FILES)))
    with (Path(package.folder) / "pace/__init__.py").open("a") as stream:
        stream.write("TIMES = 2\n")
    (tmp_path / "store").mkdir()
    with pytest.raises(LockError, match=r"pace 1.0 cannot be kept: .*pace/__init__.py was edited"):
        wheels.repack(package, tmp_path / "store")
    assert list((tmp_path / "store").iterdir()) == []


def test_a_full_disk_leaves_nothing(installed: Package, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(wheels, "_add", full)
    with pytest.raises(LockError, match="No space left on device"):
        Store(tmp_path / "store").add(installed, print)
    assert not list((tmp_path / "store").rglob("*.whl")) + list((tmp_path / "store").rglob("*.part"))


def test_the_store_keeps_a_package_once_and_finds_it_by_content(installed: Package, tmp_path: Path) -> None:
    store, told = Store(tmp_path / "store"), []
    assert store.find(installed) is None
    path = store.add(installed, told.append)
    assert store.add(installed, told.append) == path
    assert told == ["keeping pace 1.0"]
    assert store.find(installed, check=True) == path
    assert store.find(dataclasses.replace(installed, content="0" * 16)) is None
    assert store.find(dataclasses.replace(installed, version="1.1")) is None
    [kept] = store.wheels()
    assert (kept.name, kept.version, kept.content, kept.bytes) == (
        "pace",
        "1.0",
        installed.content,
        path.stat().st_size,
    )


def test_a_damaged_wheel_is_refused(installed: Package, tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    path = store.add(installed, print)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(LockError, match="is damaged: remove it"):
        store.find(installed, check=True)


def test_a_wheel_whose_writer_was_killed_is_not_there(installed: Package, tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    path = store.add(installed, print)
    path.with_name(f"{path.name}.sha256").unlink()
    assert store.find(installed) is None
    assert store.add(installed, print) == path
    assert store.find(installed, check=True) == path


def test_the_store_does_not_grow_beyond_its_limit(installed: Package, tmp_path: Path) -> None:
    with pytest.raises(LockError, match="make room with `ipexperf env prune`"):
        Store(tmp_path / "store", limit=10).add(installed, print)
    assert Store(tmp_path / "store").wheels() == []


def test_pruning_removes_what_is_longest_unused_and_nothing_that_is_needed(installed: Package, tmp_path: Path) -> None:
    other = of(an_environment(tmp_path / "env", a_wheel(tmp_path, "pace", "1.1", {"pace/__init__.py": "TIMES = 2\n"})))
    store = Store(tmp_path / "store")
    for package in (installed, other):
        store.add(package, print)
    assert store.prune(10**9, set()) == []
    [line] = store.prune(store.size() - 1, {installed.content})
    assert line.startswith("removed the wheel pace-1.1-")
    assert store.prune(0, {installed.content}) == ["0.00 GB of wheels are left, because accepted locks need them"]
    assert [one.version for one in store.wheels()] == ["1.0"]


def test_a_folder_that_cannot_be_written_is_one_sentence(installed: Package, tmp_path: Path) -> None:
    (tmp_path / "store").write_text("a file")
    with pytest.raises(LockError, match=r"pace 1.0 cannot be kept in .*/store"):
        Store(tmp_path / "store").add(installed, print)
