"""Changes of structure that can only cost time, as opposed to those that merely differ.

A newer library may run other kernels that are as fast. It has no reason to run weaker instructions than the CPU has, to
fall back to a reference kernel, or to give up a fusion. Such a change needs no clock to be judged.

Each function gets what was removed and what was added, and returns the kind of the loss, or an empty text. Names that
are in no table are never losses. `docs/reference/fingerprint.md` says what each kind means, and its measured cost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

WEAKER = "weaker instructions"
REFERENCE = "a reference kernel"
WIDER = "a wider dtype"
UNFUSED = "a fusion lost"
UNPACKED = "weights not packed"
UNFROZEN = "a graph not frozen"
UNFOLDED = "BatchNorm not folded"
OBSERVER = "an observer left in"
OPTIMISER = "an optimiser not fused"
ATTENTION = "attention not fused"
BROKEN = "a graph break"
FALLBACK = "a fallback"
WAIT = "a wait for the device"
ANEW = "primitives made anew"

INSTRUCTIONS = (
    *("sse41", "avx", "avx2", "avx2_vnni", "avx2_vnni_2"),
    *("avx512_core", "avx512_core_vnni", "avx512_core_bf16", "avx512_core_fp16"),
    *("avx512_core_amx", "avx512_core_amx_fp16"),
    *("asimd", "sve", "sve_128", "sve_256", "sve_512"),
)
"""Instruction sets in the names of oneDNN's kernels, the weakest first. No processor has both x86's and Arm's."""
_AVX512_FP16 = "Intel AVX-512 with float16, Intel DL Boost and bfloat16 support"
ONEDNN = (
    "Intel 64",
    "Intel SSE4.1",
    "Intel AVX",
    "Intel AVX2",
    "Intel AVX2 with Intel DL Boost",
    "Intel AVX2 with Intel DL Boost, float16 and bfloat16 support",
    "Intel AVX-512 with AVX512BW, AVX512VL, and AVX512DQ extensions",
    "Intel AVX-512 with Intel DL Boost",
    "Intel AVX-512 with Intel DL Boost and bfloat16 support",
    _AVX512_FP16,
    f"{_AVX512_FP16} and Intel AMX with bfloat16 and 8-bit integer support",
    f"{_AVX512_FP16} and Intel AMX with bfloat16, float16 and 8-bit integer support",
    "AArch64 (with Advanced SIMD & floating-point)",
    *("AArch64 SVE", *(f"AArch64 SVE ({bits} bits)" for bits in (128, 256, 512))),
)
"""Names of instruction sets in oneDNN's log, the weakest first."""
ATEN = ("DEFAULT", "NO AVX", "AVX2", "AVX512", "SVE256")
"""Names of ATen's instruction sets, the weakest first."""
PLAIN = ("ref", "simple", "gemm:ref")
"""Prefixes of the names of oneDNN's plain loops."""
COMPUTE = frozenset(("convolution", "deconvolution", "inner_product", "matmul", "rnn"))
"""Primitives in which a step spends its arithmetic. Elsewhere a wider dtype may be meant."""
COMPUTING = frozenset(
    f"aten::{name}"
    for name in (
        *("conv1d", "conv2d", "conv3d", "convolution", "linear", "matmul", "mm", "addmm", "bmm", "baddbmm"),
        "scaled_dot_product_attention",
    )
)
"""Likewise for operators."""
BYTES = {
    **dict.fromkeys(("s4", "u4", "s8", "u8", "f8_e4m3", "f8_e5m2", "int8", "uint8", "qint8", "quint8"), 1),
    **dict.fromkeys(("bf16", "f16", "bfloat16", "float16"), 2),
    **dict.fromkeys(("f32", "s32", "float32"), 4),
    **dict.fromkeys(("f64", "float64"), 8),
}
"""Bytes of the dtypes that compute, as oneDNN and torch call them."""
ADDED = {
    "aten::batch_norm": UNFOLDED,
    "aten::aminmax": OBSERVER,
    "aten::histc": OBSERVER,
    "aten::_scaled_dot_product_attention_math": ATTENTION,
}
"""Operators that are a loss if they appear where there were none."""
REPLACED = {
    "torch_ipex::convolution_forward": (UNPACKED, tuple(f"aten::conv{n}d" for n in (1, 2, 3))),
    "torch_ipex::ipex_linear": (UNPACKED, ("aten::linear",)),
    "torch_ipex::embedding_bag": (UNFUSED, ("aten::embedding_bag",)),
    "torch_ipex::merged_embeddingbag_forward": (UNFUSED, ("aten::embedding_bag", "torch_ipex::embedding_bag")),
    "torch_ipex::interaction_forward": (UNFUSED, ("aten::bmm",)),
    **dict.fromkeys(
        (
            *(f"torch_ipex::{name}_fused_step" for name in ("sgd", "adagrad", "lamb", "adam")),
            "torch_ipex::packed_add",
            *(f"aten::_fused_{name}_" for name in ("sgd", "adagrad", "adam", "adamw")),
        ),
        (OPTIMISER, ("aten::add_", "aten::mul_", "aten::addcmul_", "aten::addcdiv_", "aten::_foreach_add_")),
    ),
}
"""Operators whose disappearance is a loss, if one of these plain ones is called more often since."""
TO_HOST = ("Memcpy DtoH", "Memcpy D2H", "Memcpy D2M")
"""Prefixes of the names of copies from the device: CUDA's, and those of SYCL's profilers."""


def weaker(removed: Iterable[str], added: Iterable[str], order: Sequence[str]) -> str:
    """The loss if everything added is weaker than everything removed. Unknown names are no loss."""
    before, after = ([order.index(name) if name in order else None for name in side] for side in (removed, added))
    ranked = [[place for place in side if place is not None] for side in (before, after)]
    if not before or not after or ranked != [before, after]:
        return ""
    return WEAKER if max(ranked[1]) < min(ranked[0]) else ""


def implementation(removed: Iterable[str], added: Iterable[str]) -> str:
    """The loss if a primitive's calls moved between these implementations, such as `brg_conv_fwd:avx512_core_bf16`."""
    old, new = list(removed), list(added)
    if not old or not new:
        return ""
    if any(name.startswith(PLAIN) for name in new) and not any(name.startswith(PLAIN) for name in old):
        return REFERENCE
    return weaker(map(instructions, old), map(instructions, new), INSTRUCTIONS)


def instructions(name: str) -> str:
    """The weakest instruction set in the name of an implementation, which may consist of several with a `+`."""
    sets = [part.rpartition(":")[2] for part in name.split("+")]
    return min(sets, key=lambda word: INSTRUCTIONS.index(word) if word in INSTRUCTIONS else -1)


def dtypes(removed: Iterable[str], added: Iterable[str]) -> str:
    """The loss if calls moved between these combinations of dtypes. An operator computes in its narrowest dtype."""
    before, after = ([_narrowest(types) for types in side] for side in (removed, added))
    if not before or not after or None in before or None in after:
        return ""
    return WIDER if min(filter(None, after)) > max(filter(None, before)) else ""


def _narrowest(types: str) -> int | None:
    sizes = [BYTES[word] for word in types.replace(",", " ").split() if word in BYTES]
    return min(sizes, default=None)


def operator(name: str, before: Mapping[str, int], after: Mapping[str, int]) -> str:
    """The loss if an operator's calls changed. Both mappings have the calls of all operators."""
    if name in ADDED:
        return ADDED[name] if after.get(name, 0) and not before.get(name, 0) else ""
    if name not in REPLACED or not before.get(name, 0) or after.get(name, 0):
        return ""
    kind, plain = REPLACED[name]
    return kind if any(after.get(other, 0) > before.get(other, 0) for other in plain) else ""


def kernel(name: str, *, more: bool) -> str:
    """The loss if an accelerator's kernel or copy runs more often."""
    return WAIT if more and name.startswith(TO_HOST) else ""
