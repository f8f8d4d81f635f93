"""A second device for torch, `torch.late`, for machines without a card. See late.cpp for what it is."""

import importlib.util
import os
import sys

BUILT = "LATE_BUILT"
"""The variable that names the built library."""


def backend() -> None:
    """Make the device known to torch. Torch calls this while it is imported: an entry point in `torch.backends`."""
    import torch
    from torch.utils.backend_registration import generate_methods_for_privateuse1_backend, rename_privateuse1_backend

    spec = importlib.util.spec_from_file_location("late_device", os.environ[BUILT])
    assert spec is not None
    assert spec.loader is not None
    library = importlib.util.module_from_spec(spec)
    sys.modules["late_device"] = library
    spec.loader.exec_module(library)
    from late import collective, device  # noqa: F401 - collective registers itself

    rename_privateuse1_backend("late")
    torch._register_device_module("late", device)
    generate_methods_for_privateuse1_backend()
