"""Known causes: what a difference of two fingerprints meant where it was found before.

`register(Cause(...))` of `ipexperf.ext` adds one. Its name is then in each dossier that it fits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ipexperf.proof import losses, structure
from ipexperf.proof.structure import Fingerprint, FingerprintDifference

PYTHON_CALLS = 1.2
"""From this many times as many calls of Python on, they are a cause."""

Signature = Callable[[Fingerprint, Fingerprint], bool]


@dataclass(frozen=True, slots=True)
class Cause:
    """What a signature means, given the fingerprints before and after."""

    name: str
    signature: str | Signature
    """The kind of a loss, as `judge.losses` has them, or a function that says whether this is it."""
    meaning: str
    page: str = ""
    """Where more is written, if anywhere."""

    def fits(self, old: Fingerprint, new: Fingerprint, difference: FingerprintDifference) -> bool:
        if isinstance(self.signature, str):
            return any(change.loss == self.signature for change in difference.changes)
        return self.signature(old, new)


CAUSES: dict[str, Cause] = {}


def add(cause: Cause) -> Cause:
    """Make a cause known. One with the same name is replaced: who found more says more."""
    CAUSES[cause.name] = cause
    return cause


def known(old: Fingerprint | None, new: Fingerprint | None) -> list[Cause]:
    """The known causes that fit these fingerprints."""
    if not old or not new or old["version"] != new["version"]:
        return []
    difference = structure.diff(old, new)
    return [cause for cause in CAUSES.values() if cause.fits(old, new, difference)]


def _reorders_plainly(side: Fingerprint) -> int:
    rows = side["structure"].get("primitives") or ()
    return sum(
        row["calls"]
        for row in rows
        if row.get("primitive") == "reorder" and row.get("implementation", "").startswith(losses.PLAIN)
    )


def _beside(side: Fingerprint, section: str) -> Mapping[str, Any]:
    counts: Mapping[str, Any] = (side.get("beside") or {}).get(section) or {}
    return counts


def _grew(section: str, name: str, times: float = 1.0) -> Signature:
    """Whether a count beside the structure has grown, by this factor or more."""

    def grew(old: Fingerprint, new: Fingerprint) -> bool:
        before, after = (_beside(side, section).get(name) or 0 for side in (old, new))
        return bool(before and after > times * before)

    return grew


def _threads(old: Fingerprint, new: Fingerprint) -> bool:
    before, after = (side["structure"].get("processor", {}).get("threads") for side in (old, new))
    return before is not None and after is not None and after < before


def _recompiled(old: Fingerprint, new: Fingerprint) -> bool:
    before, after = (side["structure"].get("compiled") for side in (old, new))
    return bool(before and after) and after["frames"] > before["frames"]


def _work(old: Fingerprint, new: Fingerprint) -> bool:
    before, after = (structure.work_of(side).get("step_flops", 0) for side in (old, new))
    return bool(before and after > before * (1 + structure.SAME))


for _cause in (
    Cause("other work", _work, "the network itself computes more: compare its layers and the size of its inputs"),
    Cause("fewer threads", _threads, "a variable, a container or a change of placement took cores from the process"),
    Cause(
        "weaker instructions",
        losses.WEAKER,
        "AMX, AVX-512 or SVE is no longer used: look for ONEDNN_MAX_CPU_ISA and ATEN_CPU_CAPABILITY, a virtual machine "
        "that hides it, or a build without it",
    ),
    Cause(
        "a reference kernel",
        losses.REFERENCE,
        "oneDNN has no fast kernel for this dtype, layout or fusion and ran its plain loop, up to 1,880 times slower",
    ),
    Cause(
        "a plain reorder",
        lambda old, new: _reorders_plainly(new) > _reorders_plainly(old),
        "tensors are laid out anew by oneDNN's plain loop in each step: keep one memory format, or convert once",
    ),
    Cause("a wider dtype", losses.WIDER, "part of the step left the low precision: a cast, or an autocast that ended"),
    Cause(
        "BatchNorm not folded",
        losses.UNFOLDED,
        "the network was optimised in training mode, traced without freezing, or its convolution has two users",
    ),
    Cause("a fusion lost", losses.UNFUSED, "an operation between the two, or a version that no longer fuses them"),
    Cause("weights not packed", losses.UNPACKED, "ipex.optimize was left out, or weights were replaced after it"),
    Cause("a graph not frozen", losses.UNFROZEN, "torch.jit.freeze was left out, or failed without a word"),
    Cause("an observer left in", losses.OBSERVER, "the network was prepared for int8, and never converted"),
    Cause("an optimiser not fused", losses.OPTIMISER, "its parameters are of a kind that the fused step does not take"),
    Cause("attention not fused", losses.ATTENTION, "a mask, dropout or dtype that the fused kernel does not take"),
    Cause("recompilation", _recompiled, "torch.compile made more graphs: a shape, a number or an attribute changes"),
    Cause("a graph break", losses.BROKEN, "torch.compile left its graph for Python: the reason is in the change"),
    Cause(
        "a fallback",
        losses.FALLBACK,
        "TorchScript runs a part unoptimised: its inputs differ from those it saw",
    ),
    Cause(
        "a wait for the device",
        losses.WAIT,
        "a copy to the host in each step: .item(), a print, or an operator that falls back to the CPU",
    ),
    Cause("primitives made anew", losses.ANEW, "shapes change from step to step, so that oneDNN plans anew each time"),
    Cause("more kernels", _grew("counts", "kernels"), "work is split into more kernels, each with a start of its own"),
    Cause("allocates more", _grew("memory", "allocated", 1.05), "the step makes a copy, or keeps a result"),
    Cause(
        "more Python",
        _grew("python", "calls", PYTHON_CALLS),
        "the step calls more functions of Python, outside kernels",
    ),
):
    add(_cause)
