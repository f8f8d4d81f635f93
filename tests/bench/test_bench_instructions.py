"""AMX, AVX-512 BF16 and VNNI that a processor has must be used by a case in bf16 or int8, or the case is wrong.

No such processor was at hand: the lines are those of a log of oneDNN's with the names that it has for them.
"""

from typing import Any

import pytest

from ipexperf.bench import precision, registry
from ipexperf.bench.api import Kernel
from ipexperf.bench.cell import Settings
from ipexperf.bench.machine import facts, kernel_files
from ipexperf.bench.process import environment
from ipexperf.case import NetworkCase
from ipexperf.dtypes import Instructions
from ipexperf.proof import instructions, label, onednn

SAPPHIRE = frozenset({"avx512f", "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_bf16", "amx_int8", "amx_tile"})
GRANITE = SAPPHIRE | {"amx_fp16"}
COOPER = frozenset({"avx512f", "avx512_vnni", "avx512_bf16"})
CASCADE = frozenset({"avx512f", "avx512_vnni"})
ZEN = frozenset({"avx2", "fma"})
GRACE = """processor	: 71
BogoMIPS	: 2000.00
Features	: fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm jscvt fcma lrcpc dcpop \
sha3 sm3 sm4 asimddp sha512 sve asimdfhm dit uscat ilrcpc flagm sb paca pacg dcpodp sve2 sveaes svepmull svebitperm \
svesha3 svesm4 flagm2 frint svei8mm svebf16 i8mm bf16 dgh bti
CPU implementer	: 0x41
CPU architecture: 8
CPU part	: 0xd4f
"""
"""What Linux says of a core of NVIDIA's Grace (Neoverse V2)."""
ARM = frozenset(GRACE.partition("Features\t:")[2].partition("CPU")[0].split())
BF16 = NetworkCase("tiny", "cpu", "bf16", "infer", "stock", 1, 1)


def line(implementation: str, dtype: str = "bf16", weights: str = "") -> str:
    memory = f"src:{dtype}::blocked:acdb::f0 wei:{weights or dtype}:a:blocked:Acdb8a::f0 dst:f32::blocked:acdb::f0"
    return (
        f"onednn_verbose,v1,primitive,exec,cpu,convolution,{implementation},forward_inference,{memory},,"
        "alg:convolution_direct,mb16_ic3oc4_ih8oh6kh3sh1dh0ph0_iw8ow6kw3sw1dw0pw0,1.5"
    )


def kernels(*lines: str) -> list[Kernel]:
    return label.arithmetic_of(onednn.read("\n".join(lines)))


def best(dtype: str, flags: frozenset[str]) -> Instructions:
    """The best instructions of a processor that has some for this dtype."""
    found = instructions.best(dtype, flags)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("dtype", "flags", "called"),
    [
        ("bf16", SAPPHIRE, "AMX"),
        ("int8", SAPPHIRE, "AMX"),
        ("fp16", SAPPHIRE, "AVX-512 FP16"),
        ("fp16", GRANITE, "AMX"),
        ("bf16", COOPER, "AVX-512 BF16"),
        ("int8", CASCADE, "AVX-512 VNNI"),
        ("bf16", ARM, "Arm BF16"),
        ("int8", ARM, "i8mm"),
    ],
)
def test_the_best_that_a_processor_has_is_asked_for(dtype: str, flags: frozenset[str], called: str) -> None:
    assert best(dtype, flags).called == called


@pytest.mark.parametrize(
    ("dtype", "flags"),
    [("bf16", CASCADE), ("bf16", ZEN), ("int8", ZEN), ("fp32", SAPPHIRE), ("fp16", COOPER), ("fp16", ARM)],
)
def test_what_a_processor_has_not_is_a_fact_and_no_flaw(dtype: str, flags: frozenset[str]) -> None:
    assert instructions.best(dtype, flags) is None


@pytest.mark.parametrize(
    ("dtype", "flags", "implementation", "ok"),
    [
        ("bf16", SAPPHIRE, "brg_conv_fwd:avx512_core_amx", True),
        ("bf16", SAPPHIRE, "brg_conv_fwd:avx10_1_512_amx", True),
        ("bf16", SAPPHIRE, "brg_conv_fwd:avx512_core_bf16", False),
        ("bf16", SAPPHIRE, "brg_conv_fwd:avx10_1_512", False),
        ("bf16", COOPER, "brgconv_1x1:avx512_core_bf16", True),
        ("bf16", COOPER, "brg_conv_fwd:avx512_core", False),
        ("int8", SAPPHIRE, "brg_conv_fwd:avx512_core_vnni", False),
        ("int8", CASCADE, "jit_int8:avx512_core_vnni", True),
        ("int8", CASCADE, "jit_int8:avx512_core", False),
        ("fp16", SAPPHIRE, "brg_conv_fwd:avx10_1_512", True),
        ("fp16", SAPPHIRE, "jit:avx512_core", False),
        ("fp16", GRANITE, "brg_conv_fwd:avx10_1_512_amx_fp16", True),
        ("fp16", GRANITE, "brg_conv_fwd:avx10_1_512", False),
        *(
            ("bf16", ARM, name, True)
            for name in ("gemm:acl", "indirect_gemm:acl", "jit:bf16", "brgconv:sve_128", "kai")
        ),
        *(("bf16", ARM, name, False) for name in ("ref:any", "gemm:ref")),
        ("int8", ARM, "lowp_gemm:acl", True),
    ],
)
def test_a_kernel_must_say_that_it_used_them(
    *, dtype: str, flags: frozenset[str], implementation: str, ok: bool
) -> None:
    """The liar is a kernel of the right dtype that did without: its case is slower than its label says."""
    means = best(dtype, flags)
    kinds = {"bf16": ("bf16",), "fp16": ("f16",), "int8": ("u8", "s8")}[dtype]
    text = line(implementation, *kinds)
    found = instructions.check(kernels(text), dtype, means)
    assert found.ok is ok
    assert f"{means.called} in {int(ok)} of 1 kernels of oneDNN in {dtype}: {implementation} x1" in found.found


@pytest.mark.parametrize(
    ("problem", "ok"),
    [
        ("4x512:512x10", True),
        ("128x16:16x256", True),
        ("64x512:512x10", False),
        ("16x4x8:16x8x4", True),
        ("16x128x64:16x64x128", False),
        ("mb8ic512oc10", True),
        ("mb64ic512oc1000", False),
    ],
)
def test_products_too_small_for_tiles_need_no_amx(*, problem: str, ok: bool) -> None:
    """A network of such alone is right, and a single larger one that does without is not excused by them."""
    means = best("bf16", SAPPHIRE)
    memory = "src:bf16::blocked:ab::f0 wei:bf16::blocked:ab::f0 dst:bf16::blocked:ab::f0"
    log = "onednn_verbose,v1,primitive,exec,cpu,matmul,brg_matmul:avx10_1_512,undef,{},,,{},0.1"
    small = log.format(memory, problem)
    assert instructions.check(kernels(small), "bf16", means).ok is ok
    assert not instructions.check(kernels(small, line("brg_conv_fwd:avx10_1_512")), "bf16", means).ok
    narrower = best("bf16", COOPER)
    assert not instructions.check(kernels(small.replace("avx10_1_512", "avx512_core")), "bf16", narrower).ok


def test_an_arm_machine_tells_its_core_and_instructions(monkeypatch: pytest.MonkeyPatch) -> None:
    """And torch may compute all bf16 there by itself, without a log: that is no flaw."""
    monkeypatch.setattr(kernel_files, "text", {"/proc/cpuinfo": GRACE}.get)
    assert facts.cpu_flags() == ARM
    hardware = environment.hardware()
    assert hardware["cpu"] == "Arm core 0xd4f of maker 0x41"
    assert {"asimdhp", "bf16", "i8mm", "sve2", "svebf16"} < set(hardware["isa"])
    assert environment.machine_key({**hardware, "memory": 2**36}).startswith("arm-core-0xd4f-of-maker-0x41-")
    assert not any(precision.emulated("cpu", dtype, ARM) for dtype in ("bf16", "fp16"))
    assert precision.emulated("cpu", "bf16", ARM - {"bf16"})
    none = instructions.check([], "bf16", best("bf16", ARM))
    assert (none.ok, none.expected) == (True, "Arm BF16 where it is reported")
    assert not instructions.check([], "bf16", best("bf16", SAPPHIRE)).ok


def test_one_among_several_is_enough_and_those_of_another_dtype_are_none() -> None:
    """A depthwise or small layer may do without; a layer in float32 says nothing of bf16."""
    means = best("bf16", SAPPHIRE)
    others = [line("jit_dw:avx512_core_bf16")] * 2
    some = kernels(line("brg_conv_fwd:avx512_core_amx"), *others)
    assert instructions.check(some, "bf16", means).ok
    wrong = kernels(line("brg_conv_fwd:avx512_core_amx", "f32"), *others)
    assert not instructions.check(wrong, "bf16", means).ok


@pytest.mark.parametrize(
    ("dtype", "flags", "code", "name"),
    [
        ("bf16", SAPPHIRE, "_tile_dpbf16ps(2, 0, 1);", "_tile_dpbf16ps"),
        ("bf16", SAPPHIRE, "at::native::cpublas::brgemm(M, N, K,", "cpublas::brgemm"),
        ("bf16", SAPPHIRE, "at::vec::fmadd(va, vb[col], vc[i]);", ""),
        ("bf16", COOPER, "at::vec::fmadd(va, vb[col], vc[i]);", ""),
        ("int8", SAPPHIRE, "_tile_dpbusd(2, 0, 1);", "_tile_dpbusd"),
        ("int8", CASCADE, "vc[i] = _mm512_dpbusd_epi32(vc[i], va, vb[col]);", "_mm512_dpbusd_epi32"),
    ],
)
def test_kernels_that_inductor_wrote_name_their_instructions(
    dtype: str, flags: frozenset[str], code: str, name: str
) -> None:
    """With max_autotune oneDNN may run nothing. A template that converts to fp32 and multiplies there is no bf16."""
    means = best(dtype, flags)
    check = instructions.check([], dtype, means, code)
    assert check.ok is bool(name)
    assert check.found.endswith(f"in code that inductor generated: {name}" if name else "of oneDNN in bf16")


@pytest.mark.parametrize(
    ("value", "flags", "limited"),
    [
        ("AVX512_CORE_BF16", SAPPHIRE, True),
        ("AVX512_CORE_AMX", SAPPHIRE, False),
        ("ALL", SAPPHIRE, False),
        ("AVX512_CORE_BF16", COOPER, False),
        ("AVX512_CORE_AMX", COOPER, False),
    ],
)
def test_a_limit_that_a_person_set_is_a_note(
    *, value: str, flags: frozenset[str], limited: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is proven then, for nothing was promised; a limit that leaves them is none."""
    monkeypatch.setattr(facts, "cpu_flags", lambda: flags)
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", value)
    told = instructions.notes(BF16)
    assert bool(told) is limited
    if limited:
        assert told[0].endswith(f"because of ONEDNN_MAX_CPU_ISA={value}")
        assert instructions.proof(lambda: None, BF16) == []


def test_a_case_on_an_accelerator_has_no_cpu_to_prove(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts, "cpu_flags", lambda: SAPPHIRE)
    card = NetworkCase("tiny", "xpu", "bf16", "infer", "stock", 1, 1)
    assert instructions.proof(lambda: None, card) == []
    assert instructions.notes(card) == []


@pytest.mark.torch
@pytest.mark.parametrize("mode", ["infer", "train"])
def test_a_session_on_a_processor_whose_amx_lies_idle_is_invalid(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """This processor is said to have AMX, and its kernels do without: the evidence is missing, whatever the speed."""
    pytest.importorskip("torch")
    import dataclasses

    from bench_cases import bench, network

    if facts.cpu_flags() & {"amx_bf16", "avx512_bf16"}:
        pytest.skip("its kernels would use what they are said to have")
    monkeypatch.setattr(facts, "cpu_flags", lambda: SAPPHIRE)
    cpu: Any = registry.devices.get("cpu")
    cpu.start(Settings(threads=1))
    made = bench(network, mode, cpu)
    session = made.mode.open(dataclasses.replace(made, case=dataclasses.replace(made.case, dtype="bf16")))
    session.step()
    checks = {check.name: check for check in session.proof()}
    session.close()
    assert not checks["instructions"].ok
    assert checks["instructions"].expected == "AMX in at least one"
    assert checks["dtype"].ok
