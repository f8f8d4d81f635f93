"""Which slow-downs a case can have, and why it cannot have the others."""

from __future__ import annotations

from dataclasses import replace

import pytest
from plan_records import AVX2, facts

from ipexperf.bench.machine.facts import Facts
from ipexperf.case import Case
from ipexperf.errors import UsageError
from ipexperf.plan import injections
from ipexperf.plan.options import Options

HERE = facts(flags=AVX2 | {"avx"}, cores=2)
JIT = Case("resnet18", "cpu", "fp32", "infer_jit", "ipex", 32, 32, 1, "digits")
UNTRACED = "unfrozen is for a graph traced before the first step, not for "
EVERY = {injection.name: injection for injection in injections.every(Options(), HERE)}


def why_not(name: str, case: Case = JIT, here: Facts = HERE) -> str | None:
    every = {injection.name: injection for injection in injections.every(Options(), here)}
    return injections.slowed(every[name], case, here)[1]


def able(case: Case, here: Facts = HERE) -> set[str]:
    return {name for name in EVERY if why_not(name, case, here) is None}


def test_a_jitted_case_on_ipex_can_have_all_that_this_machine_can() -> None:
    """But for steps of instruction sets that the CPU does not have."""
    busy = {"busy3", "busy5", "busy10"}
    assert able(JIT) == {*busy, "avx", "sse41", "channels_last", "unfrozen", "unfused", "threads"}
    assert able(replace(JIT, stack="stock")) == {*busy, "avx", "sse41", "channels_last", "unfrozen", "threads"}
    assert able(replace(JIT, mode="train")) == {*busy, "avx", "sse41", "channels_last", "threads"}


def test_a_larger_cpu_has_more_steps_down() -> None:
    flags = HERE.cpu_flags | {"avx512bw", "avx512vl", "avx512dq", "avx512_bf16", "amx_tile"}
    assert {"avx2", "avx512_core", "avx512_core_bf16"} < able(JIT, replace(HERE, cpu_flags=flags))


@pytest.mark.parametrize(
    ("name", "case", "here", "told"),
    [
        ("avx2", JIT, HERE, "this CPU has no avx512bw: avx2 would change nothing"),
        ("threads", JIT, replace(HERE, cores=1), "one thread cannot become fewer"),
        ("busy5", replace(JIT, mode="train_ddp"), HERE, "the steps of train_ddp run in processes of their own"),
        ("unfrozen", replace(JIT, mode="infer"), HERE, UNTRACED + "fp32 in infer"),
        ("unfused", replace(JIT, stack="stock"), HERE, "only IPEX's fusion on the CPU can be switched off"),
        ("sse41", replace(JIT, device="cuda"), HERE, "oneDNN's instructions are those of a CPU, not of cuda"),
        (
            "channels_last",
            replace(JIT, knobs=(("channels_last", "off"),)),
            HERE,
            "resnet18-cpu-fp32-infer_jit-ipex+channels_last:off already has channels_last=off",
        ),
    ],
)
def test_what_a_case_cannot_have_has_a_reason(name: str, case: Case, here: Facts, told: str) -> None:
    """An injection that would change nothing is no injection: it would be counted as a miss."""
    assert why_not(name, case, here) == told


def test_only_what_is_busy_has_a_known_size() -> None:
    """What the others cost depends on the machine: it is measured, and is no promise."""
    sizes = {injection.name: injection.size for injection in EVERY.values() if injection.size is not None}
    assert sizes == {"busy3": 0.03, "busy5": 0.05, "busy10": 0.1}


def test_one_thread_less_is_counted_from_what_was_asked_for() -> None:
    names = {x.name: x.settings for x in injections.every(Options(threads=8), HERE)}
    assert names["threads"] == {"threads": 7}


def test_a_name_that_is_none_is_refused() -> None:
    assert injections.chosen(("none",), Options(), HERE) == ()
    assert [x.name for x in injections.chosen(("avx", "avx", "busy3"), Options(), HERE)] == ["avx", "busy3"]
    with pytest.raises(UsageError, match="unknown injection 'fusion'"):
        injections.chosen(("fusion",), Options(), HERE)
