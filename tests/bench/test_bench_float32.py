"""float32 that a setting of torch's lets be computed in fewer bits is not fp32."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from ipexperf.bench.devices.cuda import Cuda
from ipexperf.bench.evidence import float32


def recent(**changed: str) -> Any:
    """Torch 2.9 and later: a setting for each library and kind, as torch 2.14 has them at the start."""
    usual = {"mkldnn": "none", "cuda": "none", "cudnn": "tf32"}
    libraries = {
        library: SimpleNamespace(
            **{
                kind: SimpleNamespace(fp32_precision=changed.get(f"{library}_{kind}", precision))
                for kind in float32.KINDS
            }
        )
        for library, precision in usual.items()
    }
    return SimpleNamespace(backends=SimpleNamespace(fp32_precision="none", **libraries))


def before(*, precision: str = "highest", tf32: bool = True) -> Any:
    """Torch until 2.8: one setting for products, and one for cuDNN."""
    backends = SimpleNamespace(cudnn=SimpleNamespace(allow_tf32=tf32))
    return SimpleNamespace(backends=backends, get_float32_matmul_precision=lambda: precision)


@pytest.mark.parametrize(
    ("settings", "device", "found"),
    [
        (recent(), "cpu", "all in full precision"),
        (recent(mkldnn_conv="bf16"), "cpu", "mkldnn.conv in bf16"),
        (recent(mkldnn_matmul="bf16", cuda_matmul="tf32"), "cpu", "mkldnn.matmul in bf16"),
        (recent(mkldnn_matmul="ieee"), "xpu", "all in full precision"),
        (recent(), "cuda", "cudnn.matmul in tf32, cudnn.conv in tf32, cudnn.rnn in tf32"),
        (before(), "cpu", "all in full precision"),
        (before(precision="medium"), "cpu", "products in medium"),
        (before(), "cuda", "cudnn in tf32"),
        (before(tf32=False), "cuda", "all in full precision"),
    ],
)
def test_what_may_be_computed_in_fewer_bits_is_named(
    monkeypatch: pytest.MonkeyPatch, settings: Any, device: str, found: str
) -> None:
    monkeypatch.setattr(float32, "torch", settings)
    [check] = float32.proof("fp32", device)
    assert (check.found, check.ok) == (found, found == "all in full precision")


def test_this_torch_computes_float32_in_full_precision_unless_told_otherwise() -> None:
    assert float32.reduced("cpu") == {}
    assert float32.proof("bf16", "cpu") == []


def test_cuda_switches_off_what_torch_allows_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a convolution of an fp32 case would have inputs of 10 bits, on every card that can."""
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", True)
    monkeypatch.setattr("ipexperf.bench.devices._accelerator.Accelerator.start", lambda *_: None)
    assert float32.reduced("cuda") != {}
    Cuda().start(None)
    assert float32.reduced("cuda") == {}
