"""The presets: parts of the matrix, from minutes on a laptop to everything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ipexperf.plan import sizes


@dataclass(frozen=True, slots=True)
class Preset:
    """Blocks of the matrix, and how often each case is launched."""

    blocks: tuple[Mapping[str, tuple[str, ...]], ...]
    launches: int
    on_cards: tuple[Mapping[str, tuple[str, ...]], ...] = ()
    """The blocks for accelerators, if they are other ones."""
    size: str = sizes.SMALL
    """The input size: `small` or `normal`."""
    twin: bool = False
    """True if the reference of each group runs twice, to show the noise."""
    precision: float | None = None
    """More rounds are made, up to twice as many, while the interval of a ratio is wider than this either way."""
    published: bool = False
    """True if inference uses the batch sizes of the vendor's published results."""


_WORKLOADS = ("resnet50", "lprnet", "unet_resnet34", "ssd_resnet34", "bert_base", "bert_large", "dlrm")
"""One model of each kind that users measure."""
_QUICK: tuple[Mapping[str, tuple[str, ...]], ...] = (
    {"model": ("resnet18",), "dtype": ("fp32", "bf16"), "mode": ("infer_jit",), "stack": ("ipex", "stock")},
    {"model": ("resnet18",), "dtype": ("fp32",), "mode": ("infer",), "stack": ("stock",)},
    {"model": ("resnet18",), "dtype": ("fp32",), "mode": ("train",), "stack": ("ipex", "stock")},
    {"model": ("resnet18",), "dtype": ("bf16",), "mode": ("train",), "stack": ("ipex",)},
)
"""Minutes on a laptop."""
_PREFLIGHT: tuple[Mapping[str, tuple[str, ...]], ...] = (
    {"model": ("resnet18",), "dtype": ("fp32",), "mode": ("infer",), "stack": ("stock",)},
    {
        "model": ("resnet18",),
        "dtype": ("bf16",),
        "mode": ("infer", "infer_jit", "infer_compile", "infer_export", "train", "train_compile"),
        "stack": ("stock",),
    },
    {"model": ("gpt_small",), "dtype": ("bf16",), "mode": ("prefill", "decode"), "stack": ("stock",)},
)
"""One case of each kind of proof, before hours are spent on many."""
_NIGHTLY: tuple[Mapping[str, tuple[str, ...]], ...] = (
    *_QUICK,
    {"model": _WORKLOADS, "dtype": ("fp32", "bf16"), "mode": ("train", "infer", "infer_jit")},
    {"model": _WORKLOADS, "dtype": ("int8",), "mode": ("infer_jit",)},
    {"model": ("resnet50", "bert_base"), "dtype": ("fp32", "bf16"), "mode": ("infer_compile", "load")},
    {"model": ("resnet50",), "dtype": ("fp32", "bf16", "int8"), "mode": ("realtime",)},
    {"model": ("resnet50",), "dtype": ("fp16",), "mode": ("infer", "infer_jit")},
    {"model": ("gpt_small", "llama_135m"), "dtype": ("fp32", "bf16"), "mode": ("prefill", "decode")},
    {"model": ("resnet18",), "dtype": ("fp32",), "mode": ("train_ddp", "train_compile")},
)
"""Every workload, in training and inference, with the expensive modes on one or two of them."""
_ON_CARDS: tuple[Mapping[str, tuple[str, ...]], ...] = (
    *_QUICK,
    {"model": _WORKLOADS, "dtype": ("fp32", "bf16"), "mode": ("infer", "infer_compile", "train")},
    {"model": ("resnet50", "bert_base"), "dtype": ("fp32", "bf16"), "mode": ("infer_jit", "load", "train_compile")},
    {"model": ("resnet50",), "dtype": ("fp16", "int8"), "mode": ("infer", "infer_compile")},
    {"model": ("gpt_small", "llama_135m"), "dtype": ("fp32", "bf16"), "mode": ("prefill", "decode", "decode_compile")},
    {"model": ("resnet18",), "dtype": ("fp32",), "mode": ("train_ddp",)},
)
"""The same on a card: eager and compiled, with TorchScript, which torch deprecates, on two models."""
PRESETS: dict[str, Preset] = {
    "preflight": Preset(_PREFLIGHT, launches=1),
    "quick": Preset(_QUICK, launches=2, twin=True),
    "nightly": Preset(_NIGHTLY, launches=3, on_cards=_ON_CARDS, precision=0.10),
    "full": Preset(({},), launches=5, size=sizes.NORMAL, published=True, precision=0.10),
}
