"""A network for images and a decoder, small enough for a device that is imitated."""

from typing import Any

from ipexperf.ext import Examples, model, register, torch
from ipexperf.zoo.datasets.random_data import RandomData
from ipexperf.zoo.models._gpt import BYTES, Gpt, Shape


class Counting(RandomData):
    """Each token is the one before it, plus one: a decoder learns it in a second."""

    name = "counting"
    examples = 64

    def draw(self, count: int, size: int, generator: Any) -> Examples:
        begin = torch.randint(BYTES, (count, 1), generator=generator)
        tokens = (begin + torch.arange(size + 1)) % BYTES
        return Examples((tokens[:, :-1].contiguous(),), (tokens[:, 1:].contiguous(),))


register(Counting())


@model("small_images", size=8, batch_train=16, batch_infer=16, trained=False)
def small_images() -> Any:
    nn = torch.nn
    body = [nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.ReLU(), nn.Flatten()]
    return nn.Sequential(*body, nn.Linear(8 * 16, 10))


@model("deserter", size=8, batch_train=16, batch_infer=16, trained=False)
def deserter() -> Any:
    """Computes on the host whatever device it was put on: the story of the Arc, whose training ran elsewhere."""
    nn = torch.nn
    layers = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 10)).requires_grad_(
        requires_grad=False
    )

    class Deserter(nn.Module):  # type: ignore[misc] # torch has no types here
        def __init__(self) -> None:
            super().__init__()
            self.last = nn.Linear(10, 10)
            self.hidden = [layers]  # a list, so that nobody moves them

        def forward(self, images: Any) -> Any:
            return self.last(self.hidden[0](images.cpu()).to(images.device))

    return Deserter()


@model(
    "small_gpt",
    size=32,
    batch_train=8,
    batch_infer=4,
    task="language_modelling",
    data="counting",
    channels_last=False,
    trained=False,
    optimizer="adam",
    learning_rate=1e-2,
)
def small_gpt() -> Any:
    return Gpt(Shape(layers=2, width=64, heads=2, positions=64))
