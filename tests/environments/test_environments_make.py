"""Environments made from locks: whole or not at all, found again, and checked by what they say themselves."""

import dataclasses
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from lease_holder import Holder
from made_wheels import a_checkout, an_environment, packages_folder
from small_wheels import a_wheel

from ipexperf import lock as locks
from ipexperf.bench.machine.inventory import Package
from ipexperf.environments import make
from ipexperf.errors import IpexperfError, LockError
from ipexperf.lock import Lock

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An interpreter with three small packages, two of which share a namespace."""
    folder = tmp_path_factory.mktemp("source")
    wheels = [
        a_wheel(folder, "pace", "1.0", {"pace/__init__.py": "TIMES = 1\n", "pace-1.0.data/data/lib/libpace.so": "x"}),
        a_wheel(folder, "shared_one", "2.0", {"shared/one.py": "ONE = 1\n"}),
        a_wheel(folder, "shared_two", "2.1", {"shared/two.py": "TWO = 2\n"}),
    ]
    return str(an_environment(folder / "env", *wheels) / "bin" / "python")


@pytest.fixture
def lock(source: str) -> Lock:
    return locks.make(make.take_inventory(source), software={"onednn": "3.7"}, variables={})


@pytest.fixture(autouse=True)
def only_small(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests' own interpreter has the packages of the source, and no index is asked."""
    honest = make.take_inventory
    monkeypatch.setattr(make, "take_inventory", lambda python=None: honest(python or source))
    monkeypatch.setenv("PIP_NO_INDEX", "1")


def test_an_environment_is_made_once_and_found_again(lock: Lock, tmp_path: Path) -> None:
    told: list[str] = []
    made = make.make(tmp_path, lock, told.append)
    assert "3 packages from the store" in told[-1]
    run = subprocess.run(
        [made.python, "-c", "import pace, shared.one, shared.two; print(pace.TIMES)"],
        check=True,
        capture_output=True,
        text=True,
    )
    assert run.stdout == "1\n"
    assert (made.folder / "lib/libpace.so").read_text() == "x"
    assert make.mismatches(lock, make.take_inventory(made.python)) == []
    told.clear()
    assert make.make(tmp_path, lock, told.append) == made
    assert told == []
    assert locks.read(made.folder / make.LOCK) == lock
    other = dataclasses.replace(lock, variables=(("OMP_NUM_THREADS", "1"),), libraries=())
    assert make.find(tmp_path, other) == made


def test_the_users_own_checkout_is_in_it_as_it_is_installed_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its files are a source, which needs no index and no store. And setuptools' copies of packages are no packages."""
    checkout = a_checkout(tmp_path / "project")
    monkeypatch.chdir(checkout)
    installed = an_environment(tmp_path / "env", "--editable", checkout)
    copy = packages_folder(installed) / "setuptools" / "_vendor" / "more_itertools-10.dist-info"
    copy.mkdir(parents=True)
    (copy / "METADATA").write_text("Name: more-itertools\nVersion: 10\n")
    (packages_folder(installed) / "vendor.pth").write_text("setuptools/_vendor\n")
    lock = locks.make(make.take_inventory(str(installed / "bin" / "python")), software={}, variables={})
    assert [(package.name, package.origin) for package in lock.packages] == [("pace", "tree")]
    assert lock.perishable == {}
    with pytest.raises(LockError, match=r"pace 1\.0 is no longer installed from this tree: pip install -e \."):
        make.make(tmp_path / "cache", lock, print)
    made = make.make(tmp_path / "cache", lock, print, also=[str(installed / "bin" / "python")])
    code = "import pace; print(pace.__file__)"
    told = subprocess.run([made.python, "-c", code], check=True, capture_output=True, text=True, cwd=tmp_path)
    assert told.stdout.strip() == str(checkout / "pace.py")


def test_an_environment_is_not_made_beside_what_is_measured(lock: Lock, tmp_path: Path) -> None:
    """Unless nobody shall ask. One that is there already is had at any time."""
    with Holder("cpu") as other:
        other.held()
        with pytest.raises(IpexperfError, match="the CPU is not free"):
            make.make(tmp_path, lock, print, leasing="fail")
        made = make.make(tmp_path, lock, print, leasing="off")
        assert make.make(tmp_path, lock, print, leasing="fail") == made


def test_its_files_are_compiled(lock: Lock, tmp_path: Path) -> None:
    """Where nobody may write compiled files, as in many containers, each import would compile: it took three times as
    long."""
    made = make.make(tmp_path, lock, lambda _: None)
    there = packages_folder(made.folder)
    assert len([*there.glob("*/__pycache__/*.pyc")]) == 3
    run = subprocess.run([made.python, "-v", "-c", "import shared.one"], capture_output=True, text=True, check=True)
    assert f"matches {there / 'shared' / 'one.py'}" in run.stderr


def test_what_no_place_has_is_named_and_nothing_is_left(lock: Lock, tmp_path: Path) -> None:
    unknown = dataclasses.replace(lock, packages=(Package("no-such-package-anywhere", "1.0", "0" * 16),))
    with pytest.raises(LockError, match=r"cannot be installed: no-such-package-anywhere was not found in the"):
        make.make(tmp_path, unknown, print)
    assert make.find(tmp_path, lock) is None
    assert not list((tmp_path / make.FOLDER).glob("*.part"))


def test_a_package_from_no_index_needs_the_store(
    lock: Lock, source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest, nothing = make.take_inventory, dataclasses.replace(make.take_inventory(), packages=())
    monkeypatch.setattr(make, "take_inventory", lambda python=None: honest(python) if python else nothing)
    local = dataclasses.replace(lock, packages=tuple(dataclasses.replace(one, origin="file") for one in lock.packages))
    with pytest.raises(LockError, match=r"pace 1.0 came from no index .*accept with --keep"):
        make.make(tmp_path, local, pytest.fail)  # before anything is copied
    store = make.store_of(tmp_path)
    for package in make.take_inventory(source).packages:
        store.add(package, print)
    made = make.make(tmp_path, local, print)
    assert make.take_inventory(made.python).versions == local.versions


def test_what_no_index_has_as_the_lock_says_is_taken_from_here(
    lock: Lock, source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An index lost a version, or has another build of it."""
    of_index = dataclasses.replace(lock, packages=tuple(dataclasses.replace(one, origin="") for one in lock.packages))
    told: list[str] = []
    made = make.make(tmp_path / "lost", of_index, told.append)
    assert "3 packages from the store" in told[-1]
    wheels = Path(source).parents[2]
    other = tmp_path / "other"
    other.mkdir()
    a_wheel(other, "pace", "1.0", {"pace/__init__.py": "TIMES = 9\n"})
    for wheel in wheels.glob("shared*.whl"):
        shutil.copy(wheel, other)
    monkeypatch.setenv("PIP_FIND_LINKS", str(other))
    made = make.make(tmp_path / "cache", of_index, told.append)
    assert "1 packages from the store, 2 packages from an index" in told[-1]
    assert make.mismatches(of_index, make.take_inventory(made.python)) == []


def test_other_content_under_the_same_version_is_refused(lock: Lock, source: str, tmp_path: Path) -> None:
    """The version of a package does not say which build it is."""
    python = shutil.copytree(Path(source).parents[1], tmp_path / "env", symlinks=True) / "bin" / "python"
    folder = next((tmp_path / "env/lib").glob("python3*/site-packages"))
    record = folder / "pace-1.0.dist-info/RECORD"
    record.write_text(record.read_text().replace("pace/__init__.py,sha256=", "pace/__init__.py,sha256=A"))
    [line] = make.mismatches(lock, make.take_inventory(str(python)))
    assert line == "pace 1.0: other content than the lock says"


def test_two_that_make_the_same_at_once_make_it_once(lock: Lock, tmp_path: Path) -> None:
    told: list[str] = []
    with ThreadPoolExecutor(4) as threads:
        made = list(threads.map(lambda _: make.make(tmp_path, lock, told.append), range(4)))
    assert len({str(one.folder) for one in made}) == 1
    assert sum(line.startswith("making an environment") for line in told) == 1


def test_an_environment_that_changed_is_refused(lock: Lock, tmp_path: Path) -> None:
    made = make.make(tmp_path, lock, print)
    shutil.rmtree(next(made.folder.glob("lib/python3*/site-packages/pace-1.0.dist-info")))
    with pytest.raises(LockError, match=r"is no longer what its lock says \(pace: 1.0 -> not installed\)"):
        make.find(tmp_path, lock)


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"python": "3.2.1"}, "needs Python 3.2, and there is no python3.2 in PATH"),
        ({"platform": "CPython linux riscv64"}, "the lock is of CPython linux riscv64, and this machine is "),
        (
            {"variables": (("LD_PRELOAD", "/no/such/libjemalloc.so"),)},
            "preloads /no/such/libjemalloc.so, which is not on",
        ),
    ],
)
def test_what_this_machine_cannot_have_is_said_before_anything_is_made(
    lock: Lock, changed: dict[str, object], told: str
) -> None:
    with pytest.raises(LockError) as error:
        make.check_possible(dataclasses.replace(lock, **changed))  # type: ignore[arg-type]
    assert told in str(error.value)


def test_a_cache_that_cannot_be_written_is_one_sentence(lock: Lock, tmp_path: Path) -> None:
    (tmp_path / make.FOLDER).write_text("a file")
    with pytest.raises(LockError, match="no environment can be made in"):
        make.make(tmp_path, lock, print)
