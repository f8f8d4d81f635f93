"""`--perf-placement`: read once, strictly, and written in one way; a placed case is another case."""

import argparse
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plan_records import facts, plan

from ipexperf.bench.machine.placement import ALLOCATORS, OPENMP, ranges
from ipexperf.errors import UsageError
from ipexperf.plan import knobs, matrix, placement
from ipexperf.plan.options import Options
from ipexperf.plan.placement import LAUNCHERS, PlacementWish

FACTS = facts(cores=8)
REALTIME: dict[str, Any] = {"model": ("resnet18",), "mode": ("realtime",), "dtype": ("fp32",), "stack": ("stock",)}
cores = st.sets(st.integers(0, 40), min_size=1).map(lambda found: tuple(sorted(found)))
words = st.builds(
    PlacementWish,
    cores=st.none() | cores,
    threads=st.none() | st.integers(1, 9),
    node=st.none() | st.integers(0, 9),
    openmp=st.none() | st.sampled_from(sorted(OPENMP)),
    allocator=st.none() | st.sampled_from(sorted(ALLOCATORS)),
)
wishes = words.filter(lambda wish: wish != PlacementWish()) | st.builds(
    PlacementWish, launcher=st.sampled_from(sorted(LAUNCHERS))
)


@given(wishes)
def test_what_is_written_is_read_again(wish: PlacementWish) -> None:
    """Each wish has one spelling, and that spelling means the wish."""
    assert placement.read(str(wish)) == wish


@given(cores, st.randoms(use_true_random=False))
def test_a_core_list_means_its_cores_in_whatever_order(found: tuple[int, ...], chance: object) -> None:
    """Cores one by one, in any order and with either separator, are the range that the kernel would write."""
    shuffled = list(map(str, found))
    chance.shuffle(shuffled)  # type: ignore[attr-defined]
    for separator in ",+":
        wish = placement.read(f"cores={separator.join(shuffled)},openmp=gomp")
        assert wish == PlacementWish(cores=found, openmp="gomp")
        assert str(wish) == f"cores={ranges(found)},openmp=gomp"


@given(st.text(alphabet="cores=0123-,+ nodempxtha", max_size=20))
def test_any_text_is_a_wish_or_one_sentence(text: str) -> None:
    """Whatever is typed, it is understood or refused by the parser: it never ends in another error."""
    try:
        wish = placement.read(text)
    except argparse.ArgumentTypeError:
        return
    assert placement.read(str(wish)) == wish


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("cores=3-1", "cores: '3-1' is not a range of cores: it ends before it begins"),
        ("cores=0,0", "cores: '0,0' names a core twice"),
        ("cores=0-99999", "no core has a number above 4095"),
        ("cores=a", "cores: expected numbers and ranges such as 0-3,8, got 'a'"),
        ("node=x", "node: expected a whole number of at least 0, got 'x'"),
        ("openmp=tbb", "openmp: expected one of iomp5, gomp, got 'tbb'"),
        ("launcher=xeon,cores=0", "the launcher decides everything"),
        ("cores=0,node=0,cores=1", "cores is there twice"),
        ("node=0,1", "expected NAME=VALUE with one of cores, threads, node, openmp, allocator, launcher, got '1'"),
        ("threads=0", "threads: expected a whole number of at least 1, got '0'"),
        ("threads=4,launcher=xeon", "the launcher decides everything"),
        ("thread=4", "got 'thread=4'"),
        ("", "got ''"),
    ],
)
def test_what_is_no_placement_is_refused(text: str, told: str) -> None:
    """Each wrong word is told, with what is expected."""
    with pytest.raises(argparse.ArgumentTypeError) as refused:
        placement.read(text)
    assert told in str(refused.value)


def test_a_placed_case_is_another_case() -> None:
    """It never shares a series with one that ran where the kernel put it, or elsewhere."""
    found = []
    for text in (None, "cores=0-3", "openmp=gomp,threads=2,cores=0-3", "threads=2"):
        asked = None if text is None else placement.read(text)
        found.append(plan({**REALTIME, "mode": ("infer",), "placement": asked}, FACTS).cases[0])
    assert len({case.uid for case in found}) == 4
    assert found[0].knobs == ()
    assert found[1].id.endswith("-stock+placement:cores=0-3")
    assert knobs.option(*found[2].knobs[0]) == "--perf-placement cores=0-3,threads=2,openmp=gomp"
    assert found[3].id.endswith("-stock+placement:threads=2")


def test_a_placement_is_no_knob_that_can_be_turned() -> None:
    """It has an option of its own: `--perf-knobs placement=...` would label a case without placing it."""
    with pytest.raises(UsageError, match="unknown knob 'placement'"):
        matrix.check_names(Options(knobs=(("placement", "cores=0"),)))


@pytest.mark.parametrize(
    ("turned", "told"),
    [
        ((("instances", "3"), ("cores", "4")), "instances=3 with cores=4 need 12 cores, but only 8 may be used here"),
        ((("instances", "0"),), "instances: expected a whole number of at least 1, got '0'"),
    ],
)
def test_more_instances_than_there_are_cores_for_are_refused(turned: tuple[tuple[str, str], ...], told: str) -> None:
    """What was asked for by name and has no room ends the run before anything is measured."""
    with pytest.raises(UsageError, match=told):
        plan({**REALTIME, "knobs": turned}, FACTS)


def test_realtime_answers_one_image_at_a_time() -> None:
    """Its batch is 1 whatever the model's, and another is refused; so is another number of threads."""
    [case] = plan(REALTIME, FACTS).cases
    assert (case.batch, case.knobs) == (1, ())
    assert plan({**REALTIME, "batch": 1}, FACTS).cases == (case,)
    with pytest.raises(UsageError, match="realtime always has batch 1: --perf-batch 8 does not apply"):
        plan({**REALTIME, "batch": 8}, FACTS)
    with pytest.raises(UsageError, match="realtime always uses one thread per core: --perf-placement threads=1 does"):
        plan({**REALTIME, "placement": placement.read("threads=1")}, FACTS)
