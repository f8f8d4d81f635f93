"""Devices: the hardware that cases run on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

from ipexperf.bench.cell import Settings
from ipexperf.bench.machine.facts import Facts
from ipexperf.result import Check


class Device(ABC):
    """The hardware that a case runs on."""

    name: str
    called: tuple[str, ...] = ()
    """Other names that people use. They only serve for hints when such a name is refused."""
    vendor: str = ""
    """The vendor's number on the PCI bus."""
    accelerator: bool = False
    """True if only torch can tell whether it is there (`torch.<name>.is_available()`): the plan then imports torch."""
    hosted: bool = False
    """True if cases use the machine's own memory, so that we can tell in advance if they fit."""

    float32_in: tuple[str, ...] = ("mkldnn",)
    """The libraries of `torch.backends` that compute float32 on it."""
    float32_variables: tuple[str, ...] = ("ONEDNN_DEFAULT_FPMATH_MODE", "DNNL_DEFAULT_FPMATH_MODE")
    """The variables that let them compute in fewer bits, whatever torch's settings say."""
    quantizer: str = ""
    """The quantizer of PT2E whose patterns inductor lowers to int8 on it: `x86` of `X86InductorQuantizer`."""
    dynamic_scales: bool = False
    """True if that quantizer also leaves scales to each step."""
    collective: str = "gloo"
    """The backend of torch.distributed that carries gradients between processes with a device each."""
    oneccl: bool = False
    """True if Intel's oneCCL can carry them too."""
    unreachable: str = ""
    """What to look at if such processes do not reach one another."""

    @property
    def double(self) -> bool:
        """True if it computes in float64."""
        return True

    @abstractmethod
    def why_not(self, facts: Facts) -> str | None:
        """Return why the device cannot be used here, or None."""

    def uncompiled(self, facts: Facts) -> str | None:
        """Return why torch cannot compile for the device here, or None."""
        return facts.uncompiled()

    def variables(self, index: int, environment: Mapping[str, str]) -> dict[str, str]:
        """Return the variables that give a worker this one of several such devices. The first one names it."""
        return {}

    def card_number(self, chosen: str, environment: Mapping[str, str]) -> str:
        """Return the card whose lease covers the device that `variables` chose."""
        return chosen.partition(".")[0]

    def start(self, settings: Settings) -> None:  # noqa: B027 - optional
        """Prepare the process before anything is built, such as threads and device index."""

    @abstractmethod
    def synchronise(self) -> None:
        """Wait until the device has finished all submitted work."""

    @abstractmethod
    def put(self, value: Any) -> Any:
        """Move a tensor or module to the device."""

    def pin(self, value: Any) -> Any:
        """Return a copy of the tensor in host memory from which `put` is fastest."""
        return value

    @abstractmethod
    def reset_memory(self) -> None:
        """Measure memory from now on: above what there is."""

    @abstractmethod
    def memory(self) -> dict[str, float]:
        """Return the metrics of memory (`result.METRICS`): `peak_memory` since the reset, and others that it can tell.

        Called right after sampling: the proof and the accuracy pass take memory too.
        """

    def room(self) -> float | None:
        """Return the share of the device's own memory that no process has. None: it has none, or cannot tell."""
        return None

    def taken(self) -> float:
        """Return the share of the device's own memory that this process has."""
        return 0.0

    def warmed(self) -> None:  # noqa: B027 - optional
        """Called once the steps are warm, before the samples: memory that grows from here on grows with the steps."""

    def peaks(self) -> dict[str, float] | None:
        """Measure the operations per second in each dtype. None: as `proof.peaks` does."""
        return None

    def describe(self) -> dict[str, Any]:
        """Return name, driver and properties for the environment record."""
        return {"name": self.name}

    def proof(self, step: Callable[[], Any], block: int) -> list[Check]:
        """Return evidence that steps ran on this device, if the device can tell."""
        return []

    def metrics(self, step: Callable[[], Any], block: int) -> dict[str, float]:
        """Return further metrics of steps that the device measures (`result.METRICS`). Called after sampling."""
        return {}

    def notes(self) -> list[str]:
        """Return notes on the device for readers of the numbers."""
        return []
