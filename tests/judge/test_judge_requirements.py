"""Which packages of two environments must be taken together, so that a mix of them is accepted by its packages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from searches import candidates

from ipexperf.judge import requirements
from ipexperf.judge.bisection import Change
from ipexperf.judge.requirements import Packages, broken

GOOD: Packages = {
    "torch": ("2.7.1", ["triton==3.3.1; platform_system != 'Nowhere'", "numpy; extra == 'all'"]),
    "torchvision": ("0.22.1", ["torch==2.7.1", "numpy"]),
    "intel_extension_for_pytorch": ("2.7.0", ["torch>=2.7,<2.8", "psutil"]),
    "triton": ("3.3.1", []),
    "numpy": ("2.2.0", []),
}
BAD: Packages = {
    "torch": ("2.8.0+cpu", ["triton==3.4.0"]),
    "torchvision": ("0.23.0", ["torch==2.8.0", "numpy"]),
    "intel-extension-for-pytorch": ("2.8.0", ["torch>=2.8,<2.9", "psutil"]),
    "triton": ("3.4.0", []),
    "numpy": ("2.3.1", []),
}
PINNED = {"torch", "torchvision", "intel-extension-for-pytorch", "triton"}


def changes(good: Packages, bad: Packages) -> tuple[Change, ...]:
    """The packages that differ, and a variable of the name of one of them."""
    names = sorted({*good, *bad} - {"intel_extension_for_pytorch"})
    packages = (
        Change("package", name, *(end[name][0] if name in end else None for end in (good, bad))) for name in names
    )
    return (*(one for one in packages if one.good != one.bad), Change("variable", names[0], None, "1"))


def needed(good: Packages, bad: Packages, python: str = "3.11") -> dict[str, set[str]]:
    """What each package must be taken with, beside itself."""
    needs = requirements.needs(changes(good, bad), good, bad, python)
    assert all(change in others for change, others in needs.items())
    assert [len(others) for change, others in needs.items() if change.kind == "variable"] == [1]
    return {
        change.name: {other.name for other in others if other != change}
        for change, others in needs.items()
        if change.kind == "package"
    }


def test_pinned_packages_are_taken_together() -> None:
    expected = {name: PINNED - {name} for name in PINNED}
    assert needed(GOOD, BAD) == {**expected, "numpy": set()}


def test_a_package_is_taken_with_one_that_only_the_bad_end_has() -> None:
    good: Packages = {"a": ("1", [])}
    bad: Packages = {"a": ("2", ["b>=1"]), "b": ("1", [])}
    assert needed(good, bad) == {"a": {"b"}, "b": set()}


def test_requirements_that_an_end_breaks_itself_are_ignored() -> None:
    good: Packages = {"a": ("1", ["b<1"]), "b": ("1", []), "c": ("1", ["b==1"])}
    bad: Packages = {"a": ("2", ["b<1"]), "b": ("2", []), "c": ("1", ["b==1"])}
    assert needed(good, bad) == {"a": set(), "b": set()}


@pytest.mark.parametrize(("python", "with_it"), [("3.10", set()), ("3.11", {"b"}), ("3.12.4", {"b"})])
def test_markers_are_evaluated_for_the_given_python(python: str, with_it: set[str]) -> None:
    good: Packages = {"a": ("1", []), "b": ("1", [])}
    bad: Packages = {"a": ("2", ["b>=2; python_version >= '3.11'", "b>=3; extra == 'fast'"]), "b": ("2", [])}
    assert needed(good, bad, python)["a"] == with_it


def test_an_installed_pre_release_satisfies_a_requirement() -> None:
    good: Packages = {"a": ("1", []), "b": ("1", [])}
    bad: Packages = {"a": ("2", ["b>=1.5"]), "b": ("2.0.dev20260101", [])}
    assert needed(good, bad) == {"a": {"b"}, "b": set()}


VERSION = st.integers(1, 3)
TEXTS = st.lists(
    st.builds(
        lambda name, sign, version: f"{name}{sign}{version}",
        st.sampled_from("abcde"),
        st.sampled_from(["==", ">=", "<"]),
        VERSION,
    ),
    max_size=4,
)
ENVIRONMENT = st.dictionaries(st.sampled_from("abcde"), st.tuples(VERSION.map(str), TEXTS), min_size=1)


def sound(packages: Packages, *ends: Packages) -> dict[str, tuple[str, list[str]]]:
    """These packages with those requirements that hold at all of the ends which have the same version."""
    return {
        name: (version, [text for text in texts if not any(breaks(end, name, version, text) for end in ends)])
        for name, (version, texts) in packages.items()
    }


def breaks(end: Packages, name: str, version: str, text: str) -> bool:
    alone = {other: (package[0], ()) for other, package in end.items()}
    return end.get(name, ("",))[0] == version and bool(broken({**alone, name: (version, [text])}, "3.11"))


@given(ENVIRONMENT, ENVIRONMENT)
def test_a_mix_of_sound_ends_is_sound_exactly_if_it_keeps_all_ties(good: Packages, bad: Packages) -> None:
    same = {name: package for name, package in good.items() if bad.get(name, ("",))[0] == package[0]}
    good, bad = sound(good, good, bad), sound({**bad, **same}, good, bad)
    assert not broken(good, "3.11")
    assert not broken(bad, "3.11")
    everything = changes(good, bad)
    needs = requirements.needs(everything, good, bad, "3.11")
    for candidate in candidates(everything):
        taken = {change.name for change in candidate if change.kind == "package"}
        ends = {name: bad if name in taken else good for name in {*good, *bad}}
        mix = {name: end[name] for name, end in ends.items() if name in end}
        complete = all(needs[change] <= candidate for change in candidate)
        assert complete == (not broken(mix, "3.11"))
