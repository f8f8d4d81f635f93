"""A practitioner's script: one model, one batch size, one tight loop, without ipexperf.

Started by overhead.py, which drives it as bare_loop.py says.
"""

import argparse
from collections.abc import Callable
from typing import Any

import bare_loop
import torch
import torchvision

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
CLASSES = 10
BATCHES = 4
IMAGES = 1024


def autocast(told: argparse.Namespace, *, cache: bool) -> Any:
    enabled = told.dtype != "fp32"
    dtype = DTYPES[told.dtype] if enabled else torch.bfloat16
    return torch.amp.autocast(told.device, dtype=dtype, enabled=enabled, cache_enabled=cache)


def inference(told: argparse.Namespace, network: Any) -> Callable[[int], None]:
    """Prepare the network once. Return a loop of N forward passes."""
    network = network.eval().to(memory_format=torch.channels_last).to(told.device)
    shape = (told.batch, 3, told.size, told.size)
    batches = [torch.rand(shape).to(memory_format=torch.channels_last).to(told.device) * 2 - 1 for _ in range(BATCHES)]
    if told.stack == "ipex":
        import intel_extension_for_pytorch as ipex

        network = ipex.optimize(network, dtype=DTYPES[told.dtype], sample_input=batches[0])
    if told.mode == "infer_jit":
        with torch.no_grad(), autocast(told, cache=False):
            network = torch.jit.freeze(torch.jit.trace(network, batches[0]))

    def loop(steps: int) -> None:
        with torch.no_grad(), autocast(told, cache=False):
            for step in range(steps):
                network(batches[step % BATCHES])

    return loop


def training(told: argparse.Namespace, network: Any) -> Callable[[int], None]:
    """Prepare the network and its optimizer once. Return a loop of N optimizer steps."""
    network = network.train().to(memory_format=torch.channels_last).to(told.device)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.02, momentum=0.9)
    if told.stack == "ipex":
        import intel_extension_for_pytorch as ipex

        network, optimizer = ipex.optimize(network, optimizer=optimizer, dtype=DTYPES[told.dtype])
    scaler = torch.amp.GradScaler(told.device, enabled=told.dtype == "fp16")
    criterion = torch.nn.CrossEntropyLoss()
    images = torch.rand(IMAGES, 3, told.size, told.size) * 2 - 1
    labels = torch.randint(CLASSES, (IMAGES,))

    def loop(steps: int) -> None:
        for _ in range(steps):
            chosen = torch.randint(IMAGES, (told.batch,))
            batch = images[chosen].to(memory_format=torch.channels_last).to(told.device)
            target = labels[chosen].to(told.device)
            optimizer.zero_grad(set_to_none=True)
            with autocast(told, cache=True):
                loss = criterion(network(batch), target)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()

    return loop


def main() -> None:
    told = bare_loop.parse(__doc__, ("train", "infer", "infer_jit"), ("ipex", "stock"))
    stream = bare_loop.replies()
    torch.set_num_threads(told.threads)
    torch.manual_seed(0)
    network = getattr(torchvision.models, told.model)(num_classes=CLASSES)
    if told.weights:
        network.load_state_dict(torch.load(told.weights, weights_only=True, map_location="cpu"))
    loop = training(told, network) if told.mode == "train" else inference(told, network)
    synchronise = (lambda: None) if told.device == "cpu" else getattr(torch, told.device).synchronize
    bare_loop.answer(stream, loop, synchronise)


if __name__ == "__main__":
    main()
