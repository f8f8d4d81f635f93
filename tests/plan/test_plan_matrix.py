"""The matrix: every cell is a case or is left out with its reason, and no wish is passed over in silence."""

import dataclasses
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plan_records import AVX2, AVX512

from ipexperf.bench import loading, registry
from ipexperf.bench.cell import Cell
from ipexperf.bench.device import Device
from ipexperf.bench.devices.cpu import Cpu
from ipexperf.bench.machine.facts import HEADERS, Facts
from ipexperf.bench.model import Model
from ipexperf.case import Case, FunctionCase, NetworkCase, from_json
from ipexperf.dtypes import DTYPES
from ipexperf.errors import UsageError
from ipexperf.plan import matrix
from ipexperf.plan.options import Options
from ipexperf.zoo.datasets.cifar10 import FILES, FOLDER

AVX512_BF16 = AVX512 | {"avx512_bf16"}
AVX512_FP16 = AVX512_BF16 | {"avx512_fp16"}

NO_IPEX = "intel-extension-for-pytorch not installed in /env/bin/python: pip install 'ipexperf[ipex]' there"


def facts(
    torch: str | None = "2.8.0+cpu",
    ipex: str | None = "2.8.0",
    flags: frozenset[str] = AVX512_BF16,
    torchvision: str | None = "0.23.0",
    **accelerators: str,
) -> Facts:
    packages = {"torch": torch, "torchvision": torchvision, "intel-extension-for-pytorch": ipex}
    return Facts("/env/bin/python", packages, flags, accelerators, headers=frozenset(HEADERS))


def ids(plan: matrix.Plan) -> set[str]:
    return {case.id for case in plan.cases}


def test_the_nightly_preset_of_a_card_compiles_where_that_of_a_cpu_traces() -> None:
    """TorchScript is on two models there, a second card is not asked for, and the quick preset is part of it."""
    here = dataclasses.replace(
        facts(cuda=""), compiler="/usr/bin/g++", cards={"cuda": [{"name": "H200", "float64": True}]}
    )
    wish: dict[str, Any] = {"device": ("cuda",), "stack": ("stock",)}
    quick, nightly, full = (
        ids(matrix.make(Options(preset=name, **wish), here)) for name in ("quick", "nightly", "full")
    )
    assert quick < nightly < full
    modes = Counter(name.split("-")[3] for name in nightly)
    assert modes["infer_compile"] >= modes["infer"] - 1 > modes["infer_jit"]
    assert (modes["train_compile"] > 0, modes["train_ddp"]) == (True, 0)
    both = matrix.make(Options(preset="nightly", device=("cpu", "cuda"), stack=("stock",)), here)
    assert nightly == {name for name in ids(both) if "-cuda-" in name}
    assert ids(both) - nightly == ids(matrix.make(Options(preset="nightly", stack=("stock",)), here))


def test_the_quick_preset_on_a_whole_machine() -> None:
    """With torch, IPEX and a CPU that computes in bf16 every cell of the quick preset runs, launched three times."""
    plan = matrix.make(Options(), facts())
    assert ids(plan) == {
        "resnet18-cpu-fp32-infer_jit-ipex",
        "resnet18-cpu-fp32-infer_jit-stock",
        "resnet18-cpu-bf16-infer_jit-ipex",
        "resnet18-cpu-bf16-infer_jit-stock",
        "resnet18-cpu-fp32-infer-stock",
        "resnet18-cpu-fp32-train-ipex",
        "resnet18-cpu-fp32-train-stock",
        "resnet18-cpu-bf16-train-ipex",
    }
    assert len(plan.cases) == 8
    assert (plan.left_out, plan.launches) == ((), 2)


def test_presets_grow() -> None:
    """Every case of quick is in nightly, every one of nightly is in full, and none launches less than a smaller one."""
    plans = [matrix.make(Options(preset=name), facts(flags=AVX512_FP16)) for name in ("quick", "nightly", "full")]
    quick, nightly, full = map(ids, plans)
    assert quick < nightly < full
    assert [plan.launches for plan in plans] == [2, 3, 5]
    assert all(len(plan.cases) == len(ids(plan)) for plan in plans)


@pytest.mark.parametrize(
    ("part", "nightly"),
    [
        (
            "-load-",
            {f"resnet50-cpu-{dtype}-load-{stack}" for dtype in ("fp32", "bf16") for stack in ("ipex", "stock")},
        ),
        ("-train_compile-", {f"resnet18-cpu-fp32-train_compile-{stack}" for stack in ("ipex", "stock")}),
        (
            "resnet50-cpu-int8-",
            {f"resnet50-cpu-int8-{mode}-{stack}" for mode in ("infer_jit", "realtime") for stack in ("ipex", "stock")},
        ),
        ("-multistream-", set()),
    ],
)
def test_what_takes_long_is_in_no_quick_preset(part: str, nightly: set[str]) -> None:
    """A launch takes minutes to compile or to quantise. The full preset has more of each.

    Of the networks whose data come with ipexperf.
    """
    here = dataclasses.replace(facts(), compiler="/usr/bin/g++", cores=4, iomp5="/env/lib/libiomp5.so")
    plans = {name: ids(matrix.make(Options(preset=name), here)) for name in ("quick", "nightly", "full")}
    found = {name: {one for one in plan if part in one and one.startswith("resnet")} for name, plan in plans.items()}
    assert (found["quick"], found["nightly"]) == (set(), nightly)
    assert found["full"] > nightly


def test_an_emulated_dtype_is_measured_where_it_is_asked_for() -> None:
    """No preset spends its time on a dtype that the CPU emulates; who names it gets it, and so does who says all."""
    plan = matrix.make(Options(), facts(flags=AVX512))
    assert not any("-bf16-" in name for name in ids(plan))
    assert {left.id: left.reason for left in plan.left_out}["resnet18-cpu-bf16-train-ipex"] == (
        "this CPU only emulates bf16, which is slower than fp32: --dtype bf16 measures it all the same"
    )
    for wish in (("bf16",), (matrix.ALL,)):
        asked = matrix.make(Options(dtype=wish), facts(flags=AVX512))
        assert "resnet18-cpu-bf16-infer_jit-stock" in ids(asked)
    # A kernel that tells no instruction sets tells nothing of this.
    assert any("-bf16-" in name for name in ids(matrix.make(Options(), facts(flags=frozenset()))))


def test_all_means_every_name_of_the_axis() -> None:
    """`all` takes every dtype there is: those that cannot run are left out, and nothing is refused."""
    plan = matrix.make(Options(dtype=("all",), mode=("train",), stack=("stock",)), facts())
    assert {case.dtype for case in plan.cases} | {left.cell.dtype for left in plan.left_out} == set(DTYPES)
    assert set(plan.reasons) == {
        "fp16 training on a CPU skips every step of its gradient scaler: use bf16",
        "int8 is for inference: there is no int8 training",
    }


@pytest.mark.parametrize(
    ("called", "meant"),
    [("GPU", "cuda or xpu"), ("arc", "xpu"), ("intel", "cpu or xpu")],
)
def test_what_people_call_a_device_is_a_hint_and_no_name(called: str, meant: str) -> None:
    """Each device tells what it is called: all that may be meant are named, and none is taken in its place."""
    with pytest.raises(UsageError) as error:
        matrix.check_names(Options(device=(called,)))
    assert str(error.value) == f"--device: unknown device '{called}': did you mean {meant}?"


def test_a_device_of_somebodys_own_gives_hints_too() -> None:
    """A leaf declares what it is called, and no list elsewhere needs to know it."""

    class Tpu(Cpu):
        called = ("gpu", "tensor")

    registry.devices.add("tpu", Tpu())
    for called, meant in (("gpu", "cuda or tpu or xpu"), ("tensor", "tpu")):
        with pytest.raises(UsageError, match=f"did you mean {meant}\\?$"):
            registry.devices.get(called)


def test_without_torchvision_the_models_that_need_it_say_so() -> None:
    """A model's own needs are among the reasons."""
    with pytest.raises(UsageError, match=r"nothing in preset quick .*: torchvision not installed in /env/bin/python"):
        matrix.make(Options(), facts(torchvision=None))


def test_without_ipex_its_cells_are_left_out() -> None:
    """Where IPEX is not installed, stock PyTorch still runs and IPEX's cells say why they don't."""
    plan = matrix.make(Options(), facts(ipex=None))
    assert {case.stack for case in plan.cases} == {"stock"}
    assert plan.reasons == {NO_IPEX: 4}
    assert all(left.cell.stack == "ipex" for left in plan.left_out)
    assert "resnet18-cpu-bf16-train-ipex" in {left.id for left in plan.left_out}


def test_an_ipex_of_another_torch_is_left_out() -> None:
    """IPEX beside a torch that it was not built for is left out with both versions."""
    plan = matrix.make(Options(), facts(torch="2.9.1+cpu"))
    assert {case.stack for case in plan.cases} == {"stock"}
    assert plan.reasons == {"IPEX 2.8.0 is built for torch 2.8, and torch 2.9.1+cpu is installed": 4}


def test_what_was_named_and_cannot_run_is_an_error() -> None:
    """`--stack ipex,stock` is refused where IPEX is missing: stock alone is not what was asked for."""
    with pytest.raises(UsageError) as error:
        matrix.make(Options(stack=("ipex", "stock")), facts(ipex=None))
    assert str(error.value) == f"--stack ipex,stock: ipex cannot run here: {NO_IPEX}"


@pytest.mark.parametrize(
    ("flags", "dtype", "reason"),
    [
        (frozenset({"sse4_2"}), "fp32", "IPEX needs a CPU with AVX2"),
        (AVX2, "fp32", None),
        (AVX2, "bf16", "IPEX bf16 needs a CPU with AVX-512 (bw, vl, dq) or avx_ne_convert"),
        (AVX2 | {"avx512f"}, "bf16", "IPEX bf16 needs a CPU with AVX-512 (bw, vl, dq) or avx_ne_convert"),
        (AVX2 | {"avx_ne_convert"}, "bf16", None),
        (AVX512, "bf16", None),
        (AVX512, "fp16", "IPEX fp16 needs a CPU with avx512_fp16 or avx_ne_convert"),
        (AVX512_FP16, "fp16", None),
    ],
)
def test_what_the_cpu_lacks_leaves_ipex_cells_out(flags: frozenset[str], dtype: str, reason: str | None) -> None:
    """IPEX cells need the instructions that its weight packing needs; stock PyTorch needs none of them."""
    wish = Options(dtype=(dtype, "all"), mode=("infer",), stack=("ipex", "stock"), model=("resnet18",))
    plan = matrix.make(dataclasses.replace(wish, stack=("all",)), facts(flags=flags))
    assert f"resnet18-cpu-{dtype}-infer-stock" in ids(plan)
    told = {left.id: left.reason for left in plan.left_out}
    assert told.get(f"resnet18-cpu-{dtype}-infer-ipex") == reason
    assert (f"resnet18-cpu-{dtype}-infer-ipex" in ids(plan)) == (reason is None)


def test_an_accelerator_is_looked_for_only_where_it_is_asked_for(fake: str) -> None:
    """The CPU is the default. Torch is asked about no device that nobody wants, nor about one that is not its own."""
    loading.load([fake])
    assert matrix.accelerators(Options()) == {}
    assert matrix.accelerators(Options(device=("fake", "xpu"), indices={"xpu": 1})) == {"xpu": 1}
    assert matrix.accelerators(Options(device=("all",))) == {"cuda": 0, "xpu": 0}
    assert matrix.accelerators(Options(), "cuda") == {"cuda": 0}


def test_an_absent_accelerator_is_refused_by_name_and_left_out_of_all() -> None:
    """`--device xpu` without one is an error with torch's own answer; `--device all` goes on without it."""
    told = facts(xpu="torch 2.8.0 sees no XPU on this machine", cuda="torch 2.8.0 sees no CUDA on this machine")
    with pytest.raises(UsageError, match=r"xpu cannot run here: torch 2\.8\.0 sees no XPU on this machine"):
        matrix.make(Options(device=("cpu", "xpu")), told)
    plan = matrix.make(Options(device=("all",)), told)
    assert {case.device for case in plan.cases} == {"cpu"}
    assert {left.cell.device for left in plan.left_out} == {"cuda", "xpu"}


def test_ipex_is_not_for_cuda() -> None:
    """On CUDA only stock PyTorch runs, and the reason says what IPEX is for."""
    plan = matrix.make(Options(device=("cuda",)), facts(cuda=""))
    assert {case.stack for case in plan.cases} == {"stock"}
    assert set(plan.reasons) == {"IPEX optimises for cpu and xpu, not for cuda"}


def test_the_build_of_ipex_for_cpus_is_not_for_cards() -> None:
    """It would be imported, and then find no operator for the card."""
    there = facts(xpu="")
    plan = matrix.make(Options(device=("xpu",)), there)
    assert {case.stack for case in plan.cases} == {"stock"}
    assert [reason.partition(" https:")[0] for reason in plan.reasons] == [
        "IPEX 2.8.0 is the build for CPUs: install that for GPUs from"
    ]
    build = dataclasses.replace(there, packages={**there.packages, "intel-extension-for-pytorch": "2.8.10+xpu"})
    assert {case.stack for case in matrix.make(Options(device=("xpu",)), build).cases} == {"ipex", "stock"}


def test_cifar10_takes_the_place_of_the_digits_where_its_folder_is_given(tmp_path: Path) -> None:
    """--perf-data makes CIFAR-10 the data of each case with digits, and another series of it."""
    (tmp_path / FOLDER).mkdir()
    for name in FILES:
        (tmp_path / FOLDER / name).touch()
    with_data, without = matrix.make(Options(data=tmp_path), facts()), matrix.make(Options(), facts())
    assert {case.data for case in with_data.cases} == {"cifar10"}
    assert ids(with_data) == ids(without)
    assert not {case.uid for case in with_data.cases} & {case.uid for case in without.cases}


@pytest.mark.parametrize(
    ("model", "inside"), [("resnet18", "cifar-10-batches-py"), ("dlrm", "ml-100k"), ("unet_resnet34", "roads")]
)
def test_a_folder_without_the_real_data_is_refused(model: str, inside: str, tmp_path: Path) -> None:
    """--perf-data with a folder of something else is refused: what is made here is not measured instead."""
    with pytest.raises(UsageError, match=f"holds no {inside}"):
        matrix.make(Options(data=tmp_path, model=(model,)), facts())


def test_one_folder_holds_all_real_data(tmp_path: Path) -> None:
    """Each model takes those that it can."""
    for name in ("ml-100k/u.data", "ml-100k/u.user", "ml-100k/u.item", *(f"{FOLDER}/{name}" for name in FILES)):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "roads").mkdir()
    for name in ("one_sat.jpg", "one_mask.png", "other_sat.jpg", "other_mask.png"):
        (tmp_path / "roads" / name).touch()
    plan = matrix.make(Options(data=tmp_path, model=("resnet18", "dlrm", "unet_resnet34")), facts())
    taken = {case.model: case.data for case in plan.cases}
    assert taken == {"resnet18": "cifar10", "dlrm": "movielens", "unet_resnet34": "road_images"}


def test_a_model_without_a_real_counterpart_keeps_its_data(tmp_path: Path) -> None:
    plan = matrix.make(Options(data=tmp_path, model=("minilm",)), facts())
    assert {case.data for case in plan.cases} == {"sentences"}


def test_a_model_says_where_it_makes_no_sense() -> None:
    """A model's own reasons leave out its cells in that mode or dtype."""
    why_nots = {"train": "this one is for inference", "bf16": "this one overflows in bf16"}
    registry.models.add("shy", Model("shy", object, 1, 1, 1, needs=(), why_nots=why_nots))
    plan = matrix.make(Options(model=("shy",), stack=("stock",)), facts())
    assert ids(plan) == {"shy-cpu-fp32-infer_jit-stock", "shy-cpu-fp32-infer-stock"}
    # With the stack asked for, the preset's bf16 training is stock's too; the mode's reason comes first.
    assert plan.reasons == {"this one is for inference": 2, "this one overflows in bf16": 1}


def test_a_model_says_on_which_stack_a_dtype_makes_no_sense() -> None:
    """The reason is for that stack alone: in the other, the dtype is the case's."""
    registry.models.add("shy", Model("shy", object, 1, 1, 1, needs=(), why_nots={"int8 on stock": "noise"}))
    cells = [Cell("shy", "cpu", "int8", "infer_jit", stack) for stack in ("stock", "ipex")]
    mode = registry.modes.get("infer_jit")
    assert [registry.models.get("shy").why_not(cell, mode.traits, facts()) for cell in cells] == ["noise", None]


def test_a_file_that_is_loaded_twice_registers_once(fake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loading the same file again, by another spelling of its path, changes nothing."""
    loading.load([fake])
    device: Device = registry.devices.get("fake")
    monkeypatch.chdir(Path(fake).parent)
    loading.load([fake, "fake.py"])
    assert registry.devices.get("fake") is device
    assert "tiny" in registry.models.names()


NAMES = st.text("abcdefghijklmnopqrstuvwxyz0123456789_-", min_size=1, max_size=12)
CASES = st.builds(
    NetworkCase,
    model=NAMES,
    device=NAMES,
    dtype=st.sampled_from(list(DTYPES)),
    mode=NAMES,
    stack=NAMES,
    batch=st.integers(1, 4096),
    size=st.integers(1, 1024),
    version=st.integers(1, 99),
    data=st.one_of(st.just(""), st.text(max_size=8)),
    knobs=st.dictionaries(NAMES, NAMES, max_size=3).map(lambda knobs: tuple(sorted(knobs.items()))),
)
FUNCTIONS = st.builds(FunctionCase, test=st.text(min_size=1), device=NAMES, knobs=st.just((("against", "itself"),)))


@given(CASES | FUNCTIONS)
def test_a_case_comes_back_from_json_as_it_was(case: Case) -> None:
    """A case that went through JSON text is equal, with the same id and uid."""
    again = from_json(json.loads(json.dumps(case.to_json())))
    assert again == case
    assert (again.id, again.uid, hash(again)) == (case.id, case.uid, hash(case))


@given(CASES, st.sampled_from([field.name for field in dataclasses.fields(NetworkCase)]))
def test_every_field_is_part_of_the_uid(case: NetworkCase, name: str) -> None:
    """Changing any one field of a case makes it another case."""
    old: Any = getattr(case, name)
    other = {int: 1, str: "x", tuple: (("a knob that no case has", "on"),)}[type(old)]
    changed = dataclasses.replace(case, **{name: old + other})
    assert changed.uid != case.uid
