"""A mix of two environments fits if its packages accept one another, and the reasons are told where they do not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from searches import candidates

from ipexperf.judge.bisection import Change
from ipexperf.judge.requirements import Mixes, Packages

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


def mixes(good: Packages = GOOD, bad: Packages = BAD, python: str = "3.11") -> Mixes:
    return Mixes(good, bad, python)


def taken(both: Mixes, *names: str) -> frozenset[Change]:
    return frozenset(change for change in both.changes() if change.name in names)


def fits(good: Packages, bad: Packages, *names: str, python: str = "3.11") -> bool:
    both = mixes(good, bad, python)
    return both.fits(taken(both, *names))


def test_packages_that_differ_are_listed_under_normalised_names() -> None:
    assert [(change.name, change.good, change.bad) for change in mixes().changes()] == [
        ("intel-extension-for-pytorch", "2.7.0", "2.8.0"),
        ("numpy", "2.2.0", "2.3.1"),
        ("torch", "2.7.1", "2.8.0+cpu"),
        ("torchvision", "0.22.1", "0.23.0"),
        ("triton", "3.3.1", "3.4.0"),
    ]


def test_pinned_packages_fit_only_together() -> None:
    both = mixes()
    for candidate in candidates(tuple(both.changes())):
        names = {change.name for change in candidate}
        assert both.fits(candidate) == (not names & PINNED or names >= PINNED)


def test_a_mix_without_a_required_package_does_not_fit() -> None:
    good: Packages = {"a": ("1", [])}
    bad: Packages = {"a": ("2", ["b>=1"]), "b": ("1", [])}
    assert not fits(good, bad, "a")
    assert fits(good, bad, "b")


def test_requirements_that_an_end_breaks_itself_are_ignored() -> None:
    good: Packages = {"a": ("1", ["b<1"]), "b": ("1", []), "c": ("1", ["b==1"])}
    bad: Packages = {"a": ("2", ["b<1"]), "b": ("2", []), "c": ("1", ["b==1"])}
    both = mixes(good, bad)
    assert all(both.fits(candidate) for candidate in candidates(tuple(both.changes())))


@pytest.mark.parametrize(("python", "fitting"), [("3.10", True), ("3.11", False), ("3.12.4", False)])
def test_markers_are_evaluated_for_the_given_python(python: str, *, fitting: bool) -> None:
    good: Packages = {"a": ("1", []), "b": ("1", [])}
    bad: Packages = {"a": ("2", ["b>=2; python_version >= '3.11'", "b>=3; extra == 'fast'"]), "b": ("2", [])}
    assert fits(good, bad, "a", python=python) is fitting


def test_an_installed_pre_release_satisfies_a_requirement() -> None:
    good: Packages = {"a": ("1", []), "b": ("1", [])}
    bad: Packages = {"a": ("2", ["b>=1.5"]), "b": ("2.0.dev20260101", [])}
    both = mixes(good, bad)
    assert both.fits(frozenset(both.changes()))
    assert not both.fits(taken(both, "a"))


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


@given(ENVIRONMENT, ENVIRONMENT)
def test_a_mix_fits_exactly_if_it_keeps_all_ties(good: Packages, bad: Packages) -> None:
    both = mixes(good, bad)
    ties = both.ties()
    for candidate in candidates(tuple(both.changes())):
        assert both.fits(candidate) == all(candidate.issuperset(ties.get(change, ())) for change in candidate)
