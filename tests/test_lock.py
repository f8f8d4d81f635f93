"""Locks: written and parsed, invalid lines refused, and differences listed."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipexperf import lock as locks
from ipexperf.bench.machine import inventory
from ipexperf.bench.machine.inventory import Inventory, Package
from ipexperf.errors import LockError
from ipexperf.lock import Lock

DIGEST = "0123456789abcdef"
HEAD = "# ipexperf lock 1\n# python 3.11.7\n# platform CPython linux x86_64\n"


def a_lock(*packages: Package, **more: object) -> Lock:
    return dataclasses.replace(Lock("3.11.7", "CPython linux x86_64", packages), **more)


PACKAGES = st.builds(
    Package,
    name=st.from_regex(r"[a-z][a-z0-9-]{0,12}", fullmatch=True),
    version=st.from_regex(r"[0-9]{1,3}\.[0-9]{1,2}(\+cpu|\.dev3)?", fullmatch=True),
    content=st.sampled_from(["", DIGEST]),
    origin=st.sampled_from(["", "file", "editable", "git+file:///a/b@0123"]),
)
LOCKS = st.builds(
    Lock,
    python=st.just("3.12.1"),
    platform=st.just("CPython linux x86_64"),
    packages=st.lists(PACKAGES, unique_by=lambda one: one.name).map(tuple),
    libraries=st.sampled_from([(), (("onednn", "3.7.1"),)]),
    variables=st.lists(
        st.tuples(
            st.sampled_from(["OMP_NUM_THREADS", "ONEDNN_MAX_CPU_ISA"]),
            st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\0")),
        ),
        unique_by=lambda one: one[0],
    ).map(tuple),
    placement=st.sampled_from(["", "cores=0-3,node=0"]),
    commit=st.sampled_from([None, "0123abc"]),
    dirty=st.booleans(),
    driver=st.sampled_from(["", "1.15.39122+18"]),
    name=st.sampled_from(["", "ipex-2.7"]),
)


@given(LOCKS)
def test_a_lock_survives_writing_and_parsing(lock: Lock) -> None:
    read = locks.parse(lock.text, "a lock")
    assert read == lock
    assert read.digest == lock.digest
    assert (read.name, read.commit, read.driver) == (lock.name, lock.commit, lock.driver)


def test_the_digest_names_what_can_be_made_again_and_neither_commit_nor_driver_nor_name() -> None:
    lock = a_lock(Package("torch", "2.8.0", DIGEST))
    assert dataclasses.replace(lock, name="release", commit="0123", dirty=True, driver="1.15").digest == lock.digest
    assert dataclasses.replace(lock, variables=(("OMP_NUM_THREADS", "1"),)).digest != lock.digest
    assert dataclasses.replace(lock, variables=(("OMP_NUM_THREADS", "1"),)).environment == lock.environment


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("--index-url https://example.org", "line 4: expected NAME==VERSION, got '--index-url"),
        ("-e ./here", "options and addresses are refused"),
        ("torch @ https://example.org/torch.whl", "options and addresses are refused"),
        ("torch==2.8.0 ; rm -rf /", "options and addresses are refused"),
        ("torch==2.8.0 --global-option=x", "options and addresses are refused"),
        ("torch>=2.8.0", "expected NAME==VERSION"),
        ("Torch==2.8.0", "expected NAME==VERSION"),
        ("$(reboot)==1", "expected NAME==VERSION"),
        ("", "expected NAME==VERSION, got ''"),
        ("torch==2.8.0  # content 12", "expected '# content DIGEST, from ORIGIN'"),
        ("torch==2.8.0\ntorch==2.9.0", "has torch twice"),
        ("# python 3.12.0", "'python' is unknown, or there twice"),
        ("# run reboot", "'run' is unknown"),
        ('# variable A-B "1"', 'expected NAME "VALUE"'),
        ("# variable OMP_NUM_THREADS 4", 'expected NAME "VALUE"'),
        ("# commit abc; reboot", "is no commit"),
        ("# name a/../b", "is no name"),
    ],
)
def test_a_line_that_is_not_ours_is_refused(line: str, told: str) -> None:
    with pytest.raises(LockError) as error:
        locks.parse(f"{HEAD}{line}\n", "x.txt")
    assert told in str(error.value)


@pytest.mark.parametrize(
    ("text", "told"),
    [("", "is not a lock"), ("# ipexperf lock 2\n", "is not a lock"), ("# ipexperf lock 1\n", "names no python")],
)
def test_a_file_that_is_no_lock_is_refused(text: str, told: str) -> None:
    with pytest.raises(LockError, match=told):
        locks.parse(text, "x.txt")


def test_differences_are_listed_packages_first() -> None:
    old = a_lock(Package("a", "1", DIGEST), Package("b", "1", DIGEST), Package("c", "1", DIGEST))
    new = a_lock(
        Package("a", "2", DIGEST),
        Package("b", "1", DIGEST[::-1]),
        Package("d", "1", DIGEST),
        variables=(("OMP_NUM_THREADS", "1"),),
        python="3.12.0",
        driver="1.15",
    )
    assert locks.differences(old, new) == locks.differences(dataclasses.replace(old, driver="1.15"), new)
    old = dataclasses.replace(old, driver="1.14")
    assert [str(one) for one in locks.differences(old, new)] == [
        "a: 1 -> 2",
        f"b: 1 ({DIGEST}) -> 1 ({DIGEST[::-1]})",
        "c: 1 -> unset",
        "d: unset -> 1",
        "python: 3.11.7 -> 3.12.0",
        "OMP_NUM_THREADS: unset -> 1",
        "driver: 1.14 -> 1.15",
    ]
    assert not locks.same_software(old, new)


def test_the_patch_of_python_and_the_commit_do_not_make_other_software() -> None:
    old = a_lock(Package("a", "1", DIGEST), commit="01")
    assert locks.same_software(old, dataclasses.replace(old, python="3.11.9", commit="02"))
    assert not locks.same_software(old, dataclasses.replace(old, python="3.12.0"))


@pytest.mark.parametrize(
    ("package", "told"),
    [
        (Package("a", "1.0", DIGEST), None),
        (Package("a", "1.0", DIGEST, origin="editable"), "an editable checkout"),
        (Package("a", "1.0", DIGEST, origin="tree"), None),
        (Package("a", "1.0", DIGEST, origin="file"), "installed from a file"),
        (Package("a", "2.9.0.dev20260101", DIGEST), "may remove this pre-release"),
        (Package("a", "2.8.0+cu130", DIGEST), None),
        (Package("a", "2.8.0+mine", DIGEST), "no versions with a local label"),
    ],
)
def test_packages_that_may_not_be_available_later_are_listed(package: Package, told: str | None) -> None:
    perishable = a_lock(package).perishable
    assert (told in perishable["a"]) if told else not perishable


def test_a_lock_is_found_by_its_name_or_the_start_of_its_digest(tmp_path) -> None:
    every = [a_lock(Package("a", "1", DIGEST), name="old"), a_lock(Package("a", "2", DIGEST))]
    for lock in every:
        path = locks.path_of(tmp_path, lock.digest)
        path.parent.mkdir(exist_ok=True)
        path.write_text(lock.text)
    assert locks.find(tmp_path, "old") == every[0]
    assert locks.find(tmp_path, every[1].digest[:6]) == every[1]
    for name, told in (("new", "there is no lock 'new'"), ("", "there are several locks ''")):
        with pytest.raises(LockError, match=told):
            locks.find(tmp_path, name)


def installed(*requires: str, **more: str) -> dict[str, Package]:
    own = Package("ipexperf", "0.1", "", requires=requires)
    others = {name: Package(name, "1", "", requires=(needs,) if needs else ()) for name, needs in more.items()}
    return {"ipexperf": own, **others}


def test_a_lock_leaves_out_the_packages_of_the_controller() -> None:
    """A newer linter is no other software under test."""
    packages = installed(
        "pytest>=8", 'ruff; extra == "dev"', 'torch==2.8.0; extra == "ipex"', 'timm; extra == "hub"',
        pytest="pluggy", pluggy="", ruff="", torch="sympy", sympy="", timm="", mine="helper", helper="", pip="",
    )  # fmt: skip
    assert [one.name for one in inventory._used(packages)] == ["helper", "mine", "sympy", "timm", "torch"]


def test_without_ipexperf_a_lock_has_all_packages_but_installers() -> None:
    packages = installed(torch="", ruff="", pip="", uv="")
    del packages["ipexperf"]
    assert [one.name for one in inventory._used(packages)] == ["torch", "ruff"]


def test_every_extra_belongs_to_the_controller_or_to_the_workers() -> None:
    """A new extra must be assigned to one of them."""
    from pathlib import Path

    import tomllib

    document = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())
    extras = set(document["project"]["optional-dependencies"])
    assert extras - inventory.CONTROLLER_EXTRAS == {"asv", "ipex", "stock", "hub", "torchao"}


def test_an_inventory_survives_json() -> None:
    here = inventory.gather()
    assert Inventory.from_json(here.to_json()) == here
    assert "numpy" in here.versions
