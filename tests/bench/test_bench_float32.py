"""float32 that a setting of torch's lets be computed in fewer bits is not fp32."""

import sys
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from ipexperf.bench.devices.cuda import Cuda
from ipexperf.proof import float32


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


@pytest.mark.parametrize(
    ("variable", "value", "device", "found"),
    [
        ("ONEDNN_DEFAULT_FPMATH_MODE", "BF16", "cpu", "ONEDNN_DEFAULT_FPMATH_MODE in BF16"),
        ("DNNL_DEFAULT_FPMATH_MODE", "any", "xpu", "DNNL_DEFAULT_FPMATH_MODE in any"),
        ("ONEDNN_DEFAULT_FPMATH_MODE", "STRICT", "cpu", "all in full precision"),
        ("ONEDNN_DEFAULT_FPMATH_MODE", "BF16", "cuda", "all in full precision"),
        ("NVIDIA_TF32_OVERRIDE", "1", "cuda", "NVIDIA_TF32_OVERRIDE in 1"),
        ("NVIDIA_TF32_OVERRIDE", "0", "cuda", "all in full precision"),
    ],
)
def test_a_variable_that_lowers_float32_is_named(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, device: str, found: str
) -> None:
    """The libraries read it themselves: torch's settings do not show it."""
    monkeypatch.setattr(float32, "torch", before(tf32=False))
    monkeypatch.setenv(variable, value)
    [check] = float32.proof("fp32", device)
    assert (check.found, check.ok) == (found, found == "all in full precision")


def test_ipex_has_a_setting_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A network may set it."""
    monkeypatch.setattr(float32, "torch", before(tf32=False))
    for mode, ok in (("FP32", True), ("BF32", False)):
        ipex = SimpleNamespace(get_fp32_math_mode=lambda device, mode=mode: SimpleNamespace(name=mode, on=device))
        monkeypatch.setitem(sys.modules, "intel_extension_for_pytorch", ipex)
        [check] = float32.proof("fp32", "cpu")
        assert (check.ok, "ipex in BF32" in check.found) == (ok, not ok)


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
