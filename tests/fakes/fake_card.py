"""Tensors of the fake card: CPU tensors that say `xpu`, and the ways there and back that torch cannot go here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

if TYPE_CHECKING:
    from collections.abc import Callable

    from fake_xpu import FakeXpu


class OnCard(torch.Tensor):
    """A tensor on the fake card."""

    inner: torch.Tensor
    card: FakeXpu

    @staticmethod
    def __new__(cls, inner: torch.Tensor, card: FakeXpu) -> Any:
        made = torch.Tensor._make_wrapper_subclass(
            cls,
            inner.size(),
            strides=inner.stride(),
            storage_offset=inner.storage_offset(),
            dtype=inner.dtype,
            device="cpu",  # for torch's engine, which knows no other here
        )
        made.inner, made.card = inner, card
        return made

    @property
    def device(self) -> torch.device:
        return torch.device("xpu", 0)

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return f"OnCard({self.inner})"

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        card = next(leaf.card for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, OnCard))
        return card.run(func, args, kwargs or {})


class There(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, value: Any, card: FakeXpu) -> Any:
        context.card = card
        return card.wrap(value.clone(memory_format=torch.preserve_format))

    @staticmethod
    def backward(context: Any, *gradients: Any) -> Any:  # noqa: ARG004 - torch hands it in
        return gradients[0].inner.clone(), None


class Back(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, value: Any, card: FakeXpu) -> Any:
        context.card = card
        return value.inner.clone(memory_format=torch.preserve_format)

    @staticmethod
    def backward(context: Any, *gradients: Any) -> Any:
        return context.card.wrap(gradients[0].clone()), None


def inner_of(value: Any) -> Any:
    return value.inner if isinstance(value, OnCard) else value


class Ways(TorchFunctionMode):
    """The ways to the card that torch itself cannot go here."""

    def __init__(self, card: FakeXpu) -> None:
        super().__init__()
        self.card = card

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        name = getattr(func, "__name__", "")
        if func is torch.Tensor.to:
            return self._to(func, args, kwargs)
        if func in (torch.Tensor.cpu, torch.Tensor.tolist) and isinstance(args[0], OnCard):
            plain = self.card.copy_back(args[0])
            return plain if func is torch.Tensor.cpu else plain.tolist()
        if func is torch.Tensor.pin_memory:
            if args[1:] or kwargs:
                raise DeprecationWarning("The argument 'device' of Tensor.pin_memory() is deprecated.")
            pinned = args[0].clone(memory_format=torch.preserve_format)
            pinned.pinned = True
            return pinned
        if func is torch.Tensor.is_pinned:
            return getattr(args[0], "pinned", False)
        if is_card(kwargs.get("device")) and name in ("full", "zeros", "empty", "ones"):
            return self.card.copy_there(func(*args, **{**kwargs, "device": "cpu"}), non_blocking=False)
        return func(*args, **kwargs)

    def _to(self, func: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        value, *rest = args
        wanted = [x for x in (*rest, kwargs.get("device")) if isinstance(x, (str, torch.device))]
        if wanted and isinstance(value, OnCard) != is_card(wanted[0]):
            if isinstance(value, OnCard):
                return self.card.copy_back(value)
            return self.card.copy_there(value, non_blocking=kwargs.get("non_blocking", False) or True in rest)
        if isinstance(value, OnCard) and wanted:
            return value
        return func(*args, **kwargs)


def is_card(device: Any) -> bool:
    return device is not None and not isinstance(device, int) and torch.device(device).type == "xpu"
