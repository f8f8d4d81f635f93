"""Small networks to quantise, and stacks that lie about it. Needs torch, and IPEX for some of the stacks."""

import dataclasses
import importlib
import json
import tempfile
from pathlib import Path
from typing import Any
from unittest import mock

import ipexperf
from ipexperf.bench import registry
from ipexperf.bench.api import Quantised, Workbench
from ipexperf.bench.artifacts import pt2e
from ipexperf.bench.lazy import torch
from ipexperf.bench.stacks.ipex import Ipex
from ipexperf.bench.stacks.stock import Stock

SIZE = 8


@ipexperf.model("pixels", size=SIZE, batch_train=64, batch_infer=16, learning_rate=0.1)
def pixels() -> Any:
    """Two convolutions and a linear layer."""
    nn = torch.nn
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1, bias=False),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1, stride=2),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Linear(128, 10),
    )


@ipexperf.model(
    "rows", size=SIZE, batch_train=64, batch_infer=16, learning_rate=0.1, channels_last=False, quantisation="dynamic"
)
def rows() -> Any:
    """A transformer's encoder layer over the rows of an image: eight linear layers, two products of activations."""
    nn = torch.nn

    class Rows(nn.Module):
        heads, wide = 2, 32

        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Linear(3 * SIZE, self.wide)
            self.where = nn.Parameter(torch.zeros(SIZE, self.wide))
            self.query, self.key, self.value, self.out = (nn.Linear(self.wide, self.wide) for _ in range(4))
            self.up, self.down = nn.Linear(self.wide, 64), nn.Linear(64, self.wide)
            self.before, self.after = nn.LayerNorm(self.wide), nn.LayerNorm(self.wide)
            self.head = nn.Linear(self.wide, 10)

        def apart(self, layer: Any, tokens: Any) -> Any:
            return layer(tokens).view(len(tokens), SIZE, self.heads, -1).transpose(1, 2)

        def forward(self, images: Any) -> Any:
            tokens = self.embed(images.permute(0, 2, 1, 3).reshape(len(images), SIZE, 3 * SIZE)) + self.where
            seen = self.before(tokens)
            query, key, value = (self.apart(layer, seen) for layer in (self.query, self.key, self.value))
            weights = (query @ key.transpose(-1, -2) / 4).softmax(-1)
            tokens = tokens + self.out((weights @ value).transpose(1, 2).reshape(tokens.shape))
            tokens = tokens + self.down(torch.nn.functional.gelu(self.up(self.after(tokens))))
            return self.head(tokens.mean(1))

    return Rows()


class Forgetful(Stock):
    """Says that it quantised, and hands the network back as it was."""

    def quantise(self, network: Any, *_: Any) -> Quantised:
        return Quantised(network, "{}", "nothing at all")


class Halfway(Stock):
    """Leaves the first convolution as it was."""

    def quantise(self, network: Any, example: Any, batches: list[Any], _: Workbench) -> Quantised:
        import torch.ao.quantization as ao
        from torch.ao.quantization import quantize_fx

        mapping = ao.get_default_qconfig_mapping("x86").set_module_name("0", None)
        prepared = quantize_fx.prepare_fx(network, mapping, example)
        for batch in batches:
            prepared(*batch)
        return Quantised(quantize_fx.convert_fx(prepared), "{}", "most of it")


class IpexHalfway(Ipex):
    """Turns the first convolution back to fp32 in the recipe that IPEX reads."""

    def quantise(self, network: Any, example: Any, batches: list[Any], bench: Workbench) -> Quantised:
        from intel_extension_for_pytorch import quantization

        observers = json.loads(super().quantise(network, example, batches, bench).observers)
        first = observers[" "]["q_op_infos"]["0"]
        for tensor in (*first["input_tensor_infos"], *first["weight_tensor_infos"]):
            tensor["inf_dtype"] = tensor["force_dtype"] = "torch.float32"
        mapping = quantization.default_static_qconfig_mapping
        prepared = quantization.prepare(network, mapping, example_inputs=example)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "qconf.json"
            path.write_text(json.dumps(observers))
            prepared.load_qconf_summary(qconf_summary=str(path))
        return Quantised(quantization.convert(prepared), "{}", "most of it")


class Skips(Stock):
    """Quantises the exported graph but for its first convolution, which the quantizer is made to forget."""

    def quantise(self, network: Any, example: Any, batches: list[Any], bench: Workbench) -> Quantised:
        kind = pt2e.tools("cpu")[1].X86InductorQuantizer
        whole = kind.annotate

        def annotate(quantizer: Any, graph: Any) -> Any:
            annotated = whole(quantizer, graph)
            first = next(node for node in annotated.graph.nodes if node.target is torch.ops.aten.conv2d.default)
            del first.meta["quantization_annotation"]
            return annotated

        with mock.patch.object(kind, "annotate", annotate):
            return super().quantise(network, example, batches, bench)


class ForXpu(Stock):
    """Quantises as for an Intel GPU, and runs the program here."""

    def quantise(self, network: Any, example: Any, batches: list[Any], bench: Workbench) -> Quantised:
        case = dataclasses.replace(bench.case, device="xpu")
        return super().quantise(network, example, batches, dataclasses.replace(bench, case=case))


class InNameOnly(Stock):
    """Compiles without freezing: quantises and dequantises around layers in fp32."""

    def compiled(self, network: Any, *_: Any) -> Any:
        config: Any = importlib.import_module("torch._inductor.config")
        config.freezing = False
        return torch.compile(network)


class Breaks(Stock):
    """Compiles a quantised network that prints before it answers."""

    def compiled(self, network: Any, example: Any, bench: Workbench) -> Any:
        class Prints(torch.nn.Module):  # type: ignore[misc] # torch is imported late, and has no types here
            def __init__(self) -> None:
                super().__init__()
                self.inner = network

            def forward(self, images: Any) -> Any:
                outputs = self.inner(images)
                print("half way")
                return outputs + 0

        return super().compiled(Prints(), example, bench)


class OwnProducts(Stock):
    """Lets inductor write each linear layer itself, as max_autotune may. No operator and no log names them."""

    def compiled_training(self, network: Any, bench: Workbench) -> Any:
        return torch.compile(network, options={"max_autotune_gemm": True, "max_autotune_gemm_backends": "CPP"})


for name, kind in (
    ("forgetful", Forgetful),
    ("halfway", Halfway),
    ("skips", Skips),
    ("in_name_only", InNameOnly),
    ("breaks", Breaks),
    ("own_products", OwnProducts),
    ("for_xpu", ForXpu),
    ("ipex_halfway", IpexHalfway),
):
    stack = kind()
    stack.name = name
    registry.stacks.add(name, stack)
