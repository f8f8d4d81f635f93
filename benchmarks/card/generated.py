"""Write the code that inductor generates for a card with max_autotune: `python generated.py FOLDER DEVICE`.

The proof reads inductor's own kernels from such code, which no machine without a card generates.
"""

import sys
from pathlib import Path

import torch
from torch._inductor import config
from torch._inductor.codecache import PyCodeCache

into, device = Path(sys.argv[1]), sys.argv[2]


class Network(torch.nn.Module):  # type: ignore[misc]
    """One layer of each kind that a template may replace."""

    def __init__(self) -> None:
        super().__init__()
        self.images = torch.nn.Conv2d(64, 64, 3, padding=1)
        self.point = torch.nn.Conv2d(64, 128, 1)
        self.linear = torch.nn.Linear(128, 256)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        images = self.point(torch.relu(self.images(images)))
        rows = torch.nn.functional.gelu(self.linear(images.flatten(2).transpose(1, 2)))
        return torch.bmm(rows, rows.transpose(1, 2)).softmax(2)


def write(name: str, *, backends: str, training: bool) -> None:
    """Compile one network, call it, and write each module that inductor loaded."""
    torch.compiler.reset()
    config.max_autotune_gemm_backends = backends
    config.max_autotune_conv_backends = backends
    before = len(PyCodeCache.modules)
    network = torch.compile(Network().to(device), mode="max-autotune-no-cudagraphs")
    images = torch.randn(16, 64, 16, 16, device=device)
    with torch.set_grad_enabled(training), torch.autocast(device, dtype=torch.bfloat16):
        answer = network(images)
    if training:
        answer.float().sum().backward()
    for number, module in enumerate(PyCodeCache.modules[before:]):
        (into / f"{name}_{number}.py").write_text(Path(module.__file__).read_text())


if __name__ == "__main__":
    into.mkdir(parents=True, exist_ok=True)
    for backends in ("ATEN,TRITON", "TRITON"):
        for training in (False, True):
            name = f"{backends.replace(',', '_').lower()}_{'training' if training else 'inference'}"
            try:
                write(name, backends=backends, training=training)
            except Exception as error:  # noqa: BLE001 - what it could not compile is an answer too
                (into / f"{name}.error").write_text(f"{type(error).__name__}: {error}")
