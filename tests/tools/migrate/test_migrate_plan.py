"""The plan of a migration comes from the registries: rows, candidates, settings, and why something has no equal."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from migrate_records import HERE, plan

from ipexperf.bench.machine.facts import Facts
from ipexperf.bench.networks import own
from ipexperf.case import Case
from ipexperf.environments import shipped
from ipexperf.errors import UsageError
from ipexperf.plan.options import Options
from ipexperf.tools.migrate import plan as migration
from ipexperf.tools.migrate.plan import StackSide

FAKES = Path(__file__).parents[2] / "fakes"


def names(cases: object) -> list[str]:
    return [case.id.removeprefix("tiny-fake-fp32-") for case in cases]  # type: ignore[attr-defined]


def test_each_mode_of_the_old_stack_is_a_row() -> None:
    """Inference first, then training. A mode that it lacks is no row."""
    assert names(row.case for row in plan().rows) == [
        "spin-old",
        "streamed-old",
        "teach-old",
        "teach-old+update:own",
        "teach-old+update:quick",
    ]


def test_a_decoder_reads_and_writes_texts_first() -> None:
    """Users who migrate a language model need these rows most, and the budget may end early."""
    modes = ("load", "train", "infer", "realtime", "serve", "prefill", "decode")
    cases = [Case("llama_small", "cpu", "bf16", mode, "ipex", 1, 8) for mode in modes]
    ordered = [case.mode for case in sorted(cases, key=migration._value)]
    assert ordered == ["decode", "prefill", "serve", "infer", "train", "realtime", "load"]


def test_candidates_do_the_same_work_the_plainest_first() -> None:
    """Every mode of the same kind of step, and each of them with each setting of its stack turned."""
    [spin, streamed, teach, own, quick] = plan().rows
    assert names(spin.candidates) == ["spin-new", "whirl-new", "whirl-new+searched:on"]
    assert spin.candidates == streamed.candidates
    assert names(teach.candidates) == ["teach-new"]
    assert names(quick.candidates) == ["teach-new+update:quick"]
    assert own.candidates == ()


def test_a_row_without_an_equal_has_a_reason() -> None:
    """From the leaf that lacks it."""
    reasons = {names([row.case])[0]: row.no_equal for row in plan().rows}
    assert reasons == {
        "spin-old": "",
        "streamed-old": "new has no streams",
        "teach-old": "",
        "teach-old+update:own": "own comes with old: new has none",
        "teach-old+update:quick": "",
    }


def test_a_case_without_a_setting_of_the_old_stack_is_measured() -> None:
    """Once, and in training if possible, in turns with the row that it belongs to."""
    made = plan()
    [setting] = made.settings
    assert (setting.knob.name, names([setting.on, setting.off])) == ("packed", ["teach-old", "teach-old+packed:off"])
    contest = next(one for one in made.contests if setting.on in one.cases)
    assert setting.off in contest.cases


def test_cases_of_other_work_have_rounds_of_their_own() -> None:
    """A row without a candidate has no round."""
    assert [names(contest.cases) for contest in plan().contests] == [
        ["spin-old", "streamed-old", "spin-new", "whirl-new", "whirl-new+searched:on"],
        ["teach-old", "teach-new", "teach-old+packed:off"],
        ["teach-old+update:quick", "teach-new+update:quick"],
    ]
    cases = plan().cases
    assert len(set(cases)) == len(cases)


def test_a_mode_and_a_dtype_can_be_chosen() -> None:
    """A setting of the old stack is then measured in what is left."""
    made = plan(mode=("spin",))
    assert names(made.cases) == ["spin-old", "spin-new", "spin-old+packed:off"]


def test_cells_that_the_old_stack_cannot_run_are_left_out_with_a_reason() -> None:
    assert plan().left_out == {"old cannot whirl": ("tiny-fake-fp32-whirl-old",)}


@pytest.mark.parametrize(
    ("sides", "message"),
    [
        ({"old": Facts("/a/python", {"old-package": None})}, "--from: old cannot run tiny: old-package not installed"),
        ({"new": Facts("/b/python", {"new-package": None})}, "--to: new cannot run tiny: new-package not installed"),
        ({"mode": ("whirl",)}, "--from: old cannot run tiny: old cannot whirl"),
    ],
)
def test_a_stack_that_can_run_nothing_is_refused(sides: dict[str, Facts], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        plan(**sides)


SHIPPED = {"torch": "2.8.0", "torchvision": "0.23.0", "intel-extension-for-pytorch": "2.8.0"}
FLAGS = frozenset({"avx2", "fma", "avx512bw", "avx512vl", "avx512dq", "avx512_bf16", "avx512_vnni"})


def of_ipex(**more: object) -> migration.MigrationPlan:
    """The plan for a shipped model on a processor with AVX-512 BF16."""
    wish = Options(**{"model": ("resnet18",), **more})  # type: ignore[arg-type]
    facts = dataclasses.replace(HERE, packages=SHIPPED, cpu_flags=FLAGS, compiler="g++", iomp5="libiomp5.so", cores=2)
    new = dataclasses.replace(facts, packages={**SHIPPED, "intel-extension-for-pytorch": None, "torchao": "0.18"})
    return migration.make(
        StackSide("ipex", facts, wish), StackSide("stock", dataclasses.replace(new, pt2e={"cpu": "torchao"}), wish)
    )


def test_multi_stream_and_lamb_of_ipex_have_no_equal() -> None:
    """The multi-stream module and Lamb have no equal, in the words of their leaves."""
    reasons = {row.case.id: row.no_equal for row in of_ipex().rows if row.no_equal}
    assert reasons["resnet18-cpu-bf16-multistream-ipex"].startswith("multistream is IPEX's runtime extension")
    assert reasons["resnet18-cpu-bf16-train-ipex+optimizer:lamb"].startswith("Lamb comes with IPEX")


def test_each_mode_of_stock_is_a_candidate() -> None:
    """Eager, traced, exported, compiled, without freezing, and with kernels timed."""
    row = next(row for row in of_ipex().rows if row.case.id == "resnet18-cpu-bf16-infer_jit-ipex")
    assert [case.id.removeprefix("resnet18-cpu-bf16-") for case in row.candidates] == [
        "infer-stock",
        "infer_jit-stock",
        "infer_export-stock",
        "infer_compile-stock",
        "infer_compile-stock+freezing:off",
        "infer_compile-stock+max_autotune:on",
    ]


def test_packed_and_split_weights_are_settings_of_training() -> None:
    settings = {one.knob.name: one.on.id for one in of_ipex().settings}
    assert settings["weights_prepack"] == "resnet18-cpu-fp32-train-ipex"
    assert settings["split_master_weight"] == "resnet18-cpu-bf16-train-ipex"


def test_optimizers_can_be_chosen() -> None:
    cases = of_ipex(mode=("train",), dtype=("fp32",), knobs=(("optimizer", "adam"),)).cases
    assert [case.id for case in cases][:2] == [
        "resnet18-cpu-fp32-train-ipex+optimizer:adam",
        "resnet18-cpu-fp32-train-stock+optimizer:adam",
    ]


def test_other_versions_than_ipex_was_built_for_are_refused() -> None:
    """With the reason that the stack gives."""
    facts = dataclasses.replace(HERE, packages={**SHIPPED, "torch": "2.14.1"}, cpu_flags=FLAGS)
    wish = Options(model=("resnet18",))
    with pytest.raises(UsageError, match=r"--from: ipex cannot run resnet18: IPEX 2\.8\.0 is built for torch 2\.8"):
        migration.make(StackSide("ipex", facts, wish), StackSide("stock", facts, wish))


def test_a_network_of_the_user_is_trained_if_its_file_says_how() -> None:
    """With a row for each optimizer, its own first. Otherwise the plan says what is missing."""
    learner = own.register(f"{FAKES / 'mytraining.py'}:learner")
    made = of_ipex(model=(learner,), dtype=("fp32",), mode=("train", "train_compile", "infer"))
    rows = [row.case.id.removeprefix("mytraining.learner-cpu-fp32-") for row in made.rows]
    assert rows[:3] == ["infer-ipex", "train-ipex", "train_compile-ipex"]
    assert {"train-ipex+optimizer:sgd", "train-ipex+optimizer:lamb"} <= set(rows)
    train = next(row for row in made.rows if row.case.mode == "train" and not row.case.knobs)
    assert [case.mode for case in train.candidates] == ["train", "train_compile"]
    assert made.untrained == ""
    small = own.register(f"{FAKES / 'mynets.py'}:small")
    made = of_ipex(model=(small,), dtype=("fp32",))
    assert {row.case.mode for row in made.rows} >= {"infer", "infer_jit"}
    assert made.untrained.startswith("its loss and targets are not known: write training_batch() and training_loss(")


@pytest.mark.parametrize(("lock", "known"), [("ipex-llm", True), ("ipex", False)])
def test_fused_layers_of_a_decoder_are_a_row_of_their_own(lock: str, known: bool) -> None:  # noqa: FBT001
    """With the same candidates. If transformers is missing, the page says how to compare it."""
    options = Options(model=("llama_135m",), dtype=("fp32",), mode=("decode", "infer"))
    old = StackSide("ipex", Facts("/old/python", shipped.lock(lock).versions, frozenset({"avx2", "fma"})), options)
    new = StackSide("stock", Facts("/new/python", shipped.lock("stock").versions), options)
    made = migration.make(old, new)
    candidates = {row.case.id.removeprefix("llama_135m-cpu-fp32-"): row.candidates for row in made.rows}
    left_out = [reason for reason in made.left_out if "shipped:ipex-llm" in reason]
    if known:
        assert candidates["decode-ipex+llm:on"] == candidates["decode-ipex"] != ()
        assert left_out == []
    else:
        assert "decode-ipex+llm:on" not in candidates
        assert [made.left_out[reason] for reason in left_out] == [("llama_135m-cpu-fp32-decode-ipex+llm:on",)]
    assert "infer-ipex+llm:on" not in candidates
