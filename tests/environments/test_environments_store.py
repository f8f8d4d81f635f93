"""The store: wheels by content, within a limit, whatever else happens at the same time."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import hashlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from made_wheels import a_checkout, a_full_disk, an_environment, package_in
from small_wheels import a_wheel

from ipexperf.bench.machine.inventory import Package
from ipexperf.environments import store as module
from ipexperf.environments.store import Store
from ipexperf.errors import LockError

pytestmark = pytest.mark.process

WAIT = 60.0
ADD = """
import sys, time
from pathlib import Path
from ipexperf.bench.machine.inventory import _packages
from ipexperf.environments import store

place, packages, begin = Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3])
[package] = [one for one in _packages(packages) if one.name == "pace"]
repack = store.repack

def slow(package, folder):
    (folder / "half a wheel").write_text("half")
    (begin.parent / "writing").touch()
    time.sleep(float(sys.argv[4]))
    return repack(package, folder)

store.repack = slow
print("ready", flush=True)
while not begin.exists():
    time.sleep(0.01)
print(store.Store(place).add(package, print), flush=True)
"""
"""A process that adds a package as soon as a file is there, and takes this many seconds to make the wheel."""


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("wheels")


@pytest.fixture(scope="module")
def pace(wheels: Path) -> Package:
    """An installed package. No test changes it."""
    return package_in(an_environment(wheels / "pace", a_wheel(wheels, "pace", "1.0", {"pace.py": "TIMES = 1\n"})))


@pytest.fixture(scope="module")
def three(wheels: Path) -> list[Package]:
    """Three versions of a package, with other content each."""
    made = [a_wheel(wheels, "pace", f"2.{n}", {"pace.py": f"TIMES = {n}\n"}) for n in range(3)]
    return [package_in(an_environment(wheels / wheel.stem, wheel)) for wheel in made]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "cache" / "store")


def nothing(_: str) -> None:
    pass


def files(store: Store) -> set[str]:
    """What lies in the store, but for its lock."""
    entries = (path.relative_to(store.folder) for path in store.folder.rglob("*"))
    return {str(path) for path in entries} - {".lock"}


def used_at(store: Store, package: Package, seconds: float) -> None:
    """Let a wheel be last used so many seconds after the epoch."""
    path = store.find(package)
    assert path is not None
    os.utime(f"{path}.sha256", (seconds, seconds))


def test_a_package_is_kept_once(store: Store, pace: Package) -> None:
    """`sha256sum` can check the store."""
    lines: list[str] = []
    path = store.add(pace, lines.append)
    written = path.stat().st_mtime_ns
    assert store.add(pace, lines.append) == path
    assert (lines, path.stat().st_mtime_ns) == (["keeping pace 1.0"], written)
    assert path == store.folder / pace.content / "pace-1.0-py2.py3-none-any.whl"
    assert files(store) == {pace.content, f"{pace.content}/{path.name}", f"{pace.content}/{path.name}.sha256"}
    assert Path(f"{path}.sha256").read_text() == f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n"


def test_a_package_is_found_by_name_version_and_content(store: Store, pace: Package) -> None:
    assert store.find(pace) is None
    path = store.add(pace, nothing)
    assert store.find(pace) == store.find(pace, check=True) == path
    for other in ({"name": "peace"}, {"version": "1.1"}, {"content": "0" * 16}, {"content": ""}, {"content": "../x"}):
        assert store.find(dataclasses.replace(pace, **other)) is None


def test_packages_of_requirements_only_share_a_content_and_are_kept_apart(store: Store, tmp_path: Path) -> None:
    one, two, other = (
        a_wheel(tmp_path, name, version, {}) for name, version in [("one", "1"), ("two", "1"), ("one", "2")]
    )
    both = an_environment(tmp_path / "both", one, two)
    packages = [
        package_in(both, "one"),
        package_in(both, "two"),
        package_in(an_environment(tmp_path / "2", other), "one"),
    ]
    paths = [store.add(package, nothing) for package in packages]
    assert len({package.content for package in packages}) == 1
    assert [path.name.split("-")[:2] for path in paths] == [["one", "1"], ["two", "1"], ["one", "2"]]
    assert [store.find(package) for package in packages] == paths
    used_at(store, packages[0], 100.0)
    assert store.prune(store.size() - 1, set()) == [f"removed the wheel {paths[0].name}: 0.00 GB"]
    assert [store.find(package) for package in packages] == [None, *paths[1:]]


def test_the_wheels_are_listed_by_last_use(store: Store, three: list[Package]) -> None:
    assert (store.wheels(), store.size()) == ([], 0)
    paths = [store.add(package, nothing) for package in three]
    for package, seconds in zip(three, (200.0, 300.0, 100.0), strict=True):
        used_at(store, package, seconds)
    assert [(one.name, one.version, one.used) for one in store.wheels()] == [
        ("pace", "2.1", 300.0),
        ("pace", "2.0", 200.0),
        ("pace", "2.2", 100.0),
    ]
    assert store.size() == sum(path.stat().st_size for path in paths)
    assert store.wheels()[0] == module.Wheel("pace", "2.1", three[1].content, paths[1].stat().st_size, 300.0, paths[1])
    store.find(three[2])
    assert [one.version for one in store.wheels()] == ["2.2", "2.1", "2.0"]


def test_pruning_removes_the_longest_unused_wheels_until_the_rest_fits(store: Store, three: list[Package]) -> None:
    assert store.prune(0, set()) == []
    for package, seconds in zip(three, (200.0, 300.0, 100.0), strict=True):
        store.add(package, nothing)
        used_at(store, package, seconds)
    assert store.prune(store.size(), set()) == []
    assert store.prune(store.size() - 1, set()) == ["removed the wheel pace-2.2-py2.py3-none-any.whl: 0.00 GB"]
    assert [one.version for one in store.wheels()] == ["2.1", "2.0"]
    assert len(store.prune(0, set())) == 2
    assert files(store) == set()


def test_pruning_leaves_what_is_needed_and_says_that_the_limit_is_not_reached(
    store: Store, three: list[Package]
) -> None:
    for package in three:
        store.add(package, nothing)
    needed = {package.content for package in three[:2]}
    assert store.prune(0, needed) == [
        "removed the wheel pace-2.2-py2.py3-none-any.whl: 0.00 GB",
        "0.00 GB of wheels are left, more than 0.00 GB, because accepted locks need them",
    ]
    assert {one.content for one in store.wheels()} == needed


def test_what_exceeds_the_limit_is_refused(store: Store, three: list[Package]) -> None:
    first = store.add(three[0], nothing)
    small = Store(store.folder, limit=store.size() + 1)
    held = r"pace 2\.1 takes 0\.00 GB, and .*/store holds 0\.00 GB of at most 0\.00 GB: make room with `ipexperf env pr"
    with pytest.raises(LockError, match=held):
        small.add(three[1], nothing)
    assert [one.path for one in small.wheels()] == [first]
    assert small.add(three[0], nothing) == first
    assert not (store.folder / three[1].content).exists()


def test_a_damaged_wheel_is_refused_where_it_is_checked_and_replaced_where_it_is_added(
    store: Store, pace: Package
) -> None:
    path = store.add(pace, nothing)
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + b"!")
    with pytest.raises(LockError, match=r"pace-1\.0-py2\.py3-none-any\.whl is damaged: keep pace again where"):
        store.find(pace, check=True)
    lines: list[str] = []
    assert store.add(pace, lines.append) == path
    assert lines == [f"{path} is damaged: it is replaced", "keeping pace 1.0"]
    assert store.find(pace, check=True) == path
    assert path.read_bytes() == whole


def test_a_package_whose_files_nobody_recorded_is_refused(store: Store, pace: Package) -> None:
    with pytest.raises(LockError, match=r"pace 1\.0 cannot be kept: its installer recorded no files of it"):
        store.add(dataclasses.replace(pace, content=""), nothing)


def test_a_full_disk_leaves_nothing(store: Store, wheels: Path, tmp_path: Path) -> None:
    files_of_it = {"pace.bin": os.urandom(100_000)}
    package = package_in(an_environment(tmp_path / "environment", a_wheel(tmp_path, "pace", "1.0", files_of_it)))
    with a_full_disk(after=50_000), pytest.raises(LockError, match=r"pace 1\.0 cannot be kept: .*File too large"):
        store.add(package, nothing)
    assert files(store) == set()


def test_a_folder_that_cannot_be_written_is_named_in_one_sentence(tmp_path: Path, pace: Package) -> None:
    (tmp_path / "store").write_text("a file")
    with pytest.raises(LockError, match=r"pace 1\.0 cannot be kept in .*/store: .*File exists"):
        Store(tmp_path / "store").add(pace, nothing)


@pytest.fixture
def read_only(store: Store, pace: Package, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A store that has a package, and that others may only read. Root may write anywhere, so the calls are refused."""
    path = store.add(pace, nothing)

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(os, "utime", refuse)
        patch.setattr(Path, "mkdir", refuse)
        patch.setattr(Path, "unlink", refuse)
        yield path


def test_a_store_that_others_may_only_read_is_of_use(
    read_only: Path, store: Store, pace: Package, three: list[Package]
) -> None:
    assert store.find(pace, check=True) == store.add(pace, nothing) == read_only
    with pytest.raises(LockError, match=r"pace 2\.0 cannot be kept in .*/store: .*Permission denied"):
        store.add(three[0], nothing)
    with pytest.raises(LockError, match=r"/store cannot be pruned: .*Permission denied"):
        store.prune(0, set())


@contextlib.contextmanager
def adding(store: Store, package: Package, begin: Path, seconds: float = 0.0) -> Iterator[subprocess.Popen[str]]:
    """Another process that is ready to add a package."""
    command = [sys.executable, "-c", ADD, str(store.folder), package.folder, str(begin), str(seconds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


def wait_for(path: Path) -> None:
    end = time.monotonic() + WAIT
    while not path.exists():
        assert time.monotonic() < end, f"{path} did not appear"
        time.sleep(0.01)


def test_two_processes_add_a_package_one_after_the_other(store: Store, pace: Package, tmp_path: Path) -> None:
    begin = tmp_path / "begin"
    with adding(store, pace, begin, 1.0) as first, adding(store, pace, begin, 1.0) as second:
        begin.touch()
        outputs = sorted(process.communicate(timeout=WAIT)[0].splitlines() for process in (first, second))
    path = str(store.folder / pace.content / "pace-1.0-py2.py3-none-any.whl")
    keeps = ["keeping pace 1.0", path]
    assert outputs == [keeps, [f"waiting for another process that writes to {store.folder}", *keeps]]
    assert store.find(pace, check=True) == Path(path)
    assert files(store) == {
        pace.content,
        f"{pace.content}/{Path(path).name}",
        f"{pace.content}/{Path(path).name}.sha256",
    }


def test_what_a_killed_process_left_is_no_wheel_and_is_removed_later(
    store: Store, pace: Package, three: list[Package], tmp_path: Path
) -> None:
    begin = tmp_path / "begin"
    with adding(store, pace, begin, WAIT) as process:
        begin.touch()
        wait_for(tmp_path / "writing")
        process.send_signal(signal.SIGKILL)
        process.wait(WAIT)
    assert files(store) == {".part", ".part/half a wheel"}
    assert (store.find(pace), store.wheels(), store.size()) == (None, [], 0)
    lines: list[str] = []
    store.add(three[0], lines.append)
    assert lines == ["keeping pace 2.0"]
    assert not (store.folder / ".part").exists()


class TestAnEditableCheckout:
    @pytest.fixture
    def checkout(self, tmp_path: Path) -> Path:
        return a_checkout(tmp_path / "checkout")

    @pytest.fixture
    def package(self, checkout: Path, tmp_path: Path) -> Package:
        return package_in(an_environment(tmp_path / "environment", "--editable", checkout))

    def test_is_kept_under_its_recorded_content(self, store: Store, package: Package, tmp_path: Path) -> None:
        path = store.add(package, nothing)
        assert path.parent.name == package.content
        again = package_in(an_environment(tmp_path / "again", path))
        assert (again.name, again.version) == (package.name, package.version)
        assert again.content != package.content
        assert store.find(package, check=True) == path

    def test_is_replaced_if_its_source_has_changed_since(self, store: Store, package: Package, checkout: Path) -> None:
        lines: list[str] = []
        path = store.add(package, lines.append)
        first = path.read_bytes()
        assert store.add(package, lines.append) == path
        assert (lines, path.read_bytes()) == (["keeping pace 1.0"] * 2, first)
        (checkout / "pace.py").write_text("TIMES = 2\n")
        assert store.add(package, lines.append) == path
        assert lines[-1] == "pace 1.0: its source has changed since it was kept, so its wheel is replaced"
        assert path.read_bytes() != first
        assert store.find(package, check=True) == path
