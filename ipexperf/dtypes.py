"""The dtypes of cases. `DTYPES` has a row for each, and everything that depends on a dtype reads it there.

To add one, add a row. A stack or mode that cannot run it says so in its `why_not`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bounds:
    """The largest relative RMSE and the smallest top-1 agreement with the float64 reference."""

    fidelity: float
    agreement: float
    roundings: float = 5.0
    """The most times the error of eager stock PyTorch in the same dtype."""
    sensitive: float = 0.0
    """The absolute bound if the error is at most twice that of eager stock PyTorch: then the network amplifies it."""


@dataclass(frozen=True, slots=True)
class Curve:
    """The largest distance of training's loss curve from that of stock fp32, by the number of steps compared."""

    noise: float
    """Relative noise on the initial weights of a second reference, which shows how much training amplifies rounding."""
    least: Mapping[int, float]
    """Largest distance for training that does not amplify rounding at all."""
    most: Mapping[int, float]
    """The same for training that amplifies it like ResNets: about twice the largest distance of correct code."""
    scaler: bool = False
    """True if training needs a gradient scaler, because small gradients become zero."""


@dataclass(frozen=True, slots=True)
class Instructions:
    """CPU instructions for a dtype: their common name, the flag in Linux, and their names in oneDNN and in C++."""

    called: str
    flag: str
    words: tuple[str, ...]
    intrinsics: tuple[str, ...]
    """Functions of C++ that only these instructions make, by which inductor's templates use them."""
    alone: bool = True
    """False if other libraries compute in the dtype too, without a log."""


@dataclass(frozen=True, slots=True)
class Dtype:
    """The properties of a dtype."""

    width: int
    """Bytes of an element."""
    operands: frozenset[str]
    """torch's names for the dtypes of operands in arithmetic. Only one, unless it is quantised."""
    bounds: Bounds
    curve: Curve | None = None
    """The bounds of training. None: nothing trains in it."""
    autocast: bool = False
    quantised: bool = False
    """True if the network is converted in advance, with a calibration, instead of computing under autocast."""
    native: frozenset[str] = frozenset()
    """CPU flags, any of which gives native arithmetic. Empty: every CPU has it."""
    instructions: tuple[Instructions, ...] = ()
    """Instructions that oneDNN's log names, best first. Names of newer ones count for older ones too."""

    @property
    def torch(self) -> str:
        """torch's name of this dtype."""
        (name,) = self.operands
        return name


CURVE_STEPS = 12
"""Number of steps of training to compare. Training amplifies rounding, so later steps tell little."""
_LATER = ("amx", "avx512_core_fp16", "avx10_")
_INT8_TILES = ("_tile_dpbusd(", "_tile_dpbssd(")
_ARM = ("acl", "sve", "sme", "kai", "jit:bf16", "jit:int8")
"""Names in oneDNN for Arm: of Arm's Compute Library, vector and matrix extensions, KleidiAI, and kernels of its own. It
has bf16 where the processor has it, so all but its plain loops use it. Read from its sources (version 3) and torch's,
which gives it no fp16 there and computes products of less than 8 rows itself. No such processor was at hand."""
_BRGEMM = "cpublas::brgemm("
"""oneDNN's product for one block, without a log. Inductor has a template with it for CPUs with AMX alone."""
_LOW_LEAST = {1: 0.025, 2: 0.1, 4: 0.1, CURVE_STEPS: 0.2}
_LOW_MOST = {1: 0.2, 2: 0.25, 4: 0.35, CURVE_STEPS: 0.6}

DTYPES: dict[str, Dtype] = {
    "fp32": Dtype(
        width=4,
        operands=frozenset({"float32"}),
        bounds=Bounds(fidelity=1e-4, agreement=0.995),
        curve=Curve(
            noise=2.0**-14,
            least={1: 1e-3, 2: 0.01, 4: 0.02, CURVE_STEPS: 0.05},
            most={1: 1e-3, 2: 0.2, 4: 0.25, CURVE_STEPS: 0.4},
        ),
    ),
    "bf16": Dtype(
        width=2,
        operands=frozenset({"bfloat16"}),
        bounds=Bounds(fidelity=0.03, agreement=0.97, sensitive=0.2),
        curve=Curve(noise=2.0**-8, least=_LOW_LEAST, most=_LOW_MOST),
        autocast=True,
        native=frozenset({"avx512_bf16", "amx_bf16", "avx_ne_convert", "bf16"}),
        instructions=(
            Instructions("AMX", "amx_bf16", ("amx",), ("_tile_dpbf16ps(", _BRGEMM)),
            Instructions(
                "AVX-512 BF16", "avx512_bf16", ("avx512_core_bf16", *_LATER), ("_tile_dpbf16ps(", "_mm512_dpbf16_ps(")
            ),
            Instructions("Arm BF16", "bf16", _ARM, (), alone=False),
        ),
    ),
    "fp16": Dtype(
        width=2,
        operands=frozenset({"float16"}),
        bounds=Bounds(fidelity=0.02, agreement=0.985, sensitive=0.1),
        curve=Curve(noise=2.0**-10, least=_LOW_LEAST, most=_LOW_MOST, scaler=True),
        autocast=True,
        native=frozenset({"avx512_fp16", "amx_fp16", "avx_ne_convert", "asimdhp"}),
        instructions=(
            Instructions("AMX", "amx_fp16", ("amx_fp16",), ("_tile_dpfp16ps(", _BRGEMM)),
            # Sapphire Rapids has tiles, but none for fp16: its kernels are named by AVX-512 FP16 or AVX10 alone.
            Instructions("AVX-512 FP16", "avx512_fp16", _LATER, (_BRGEMM,)),
        ),
    ),
    "int8": Dtype(
        width=1,
        operands=frozenset({"int8", "uint8"}),
        bounds=Bounds(fidelity=0.225, agreement=0.905, roundings=3.0),
        quantised=True,
        instructions=(
            Instructions("AMX", "amx_int8", ("amx",), _INT8_TILES, alone=False),
            Instructions(
                "AVX-512 VNNI",
                "avx512_vnni",
                ("avx512_core_vnni", "avx512_core_bf16", *_LATER),
                ("_mm512_dpbusd_epi32(", *_INT8_TILES),
                alone=False,
            ),
            Instructions("i8mm", "i8mm", _ARM, (), alone=False),
        ),
    ),
}
"""All dtypes, in the order of tables.

The bounds were measured on correct code (ResNet-18, digits): fp32 4e-7, bf16 3e-3. Ten times that and more is not
rounding. The error of int8 is larger and depends on the network: stock PyTorch's recipe gave 0.022 on ResNet-18 and
0.075 on ResNet-50, with 2 and 8 different answers of 256. The bound is three times its error for the network at hand,
but at most three times that for ResNet-50, because stock's recipe is one of many.

MobileNet v2 in bf16 has an error of 0.08 in eager stock PyTorch and 0.13 traced, with the answers of float64. fp16 was
not measured: it has three more bits than bf16.
"""
PLAIN = "fp32"
"""The dtype that others are compared with."""


def quantised(dtype: str) -> bool:
    """Return True if networks are converted to this dtype in advance, with a calibration."""
    return DTYPES[dtype].quantised


def needs_scaler(dtype: str) -> bool:
    """Return True if training in this dtype needs a gradient scaler."""
    curve = DTYPES[dtype].curve
    return curve is not None and curve.scaler
