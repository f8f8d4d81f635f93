"""The names of the environment variables that begin with IPEXPERF_. Those of the options are in `plan/options.py`."""

from __future__ import annotations

PREFIX = "IPEXPERF_"
LEASES = f"{PREFIX}LEASES"
"""The folder of the lock files."""
LEASED = f"{PREFIX}LEASED"
"""Set for what a holder of leases starts: the devices, on which it may measure too."""
CONTROLLER = f"{PREFIX}CONTROLLER"
"""Set in workers: the process that they end with."""
SOURCE = f"{PREFIX}SOURCE"
"""Set in workers: another tree of files that takes the place of the user's, as JSON (`bench/machine/source.py`)."""
SEARCHED = f"{PREFIX}SEARCHED"
"""Set in workers: the user's folders that the controller imports from, such as those of pytest's `pythonpath`."""
PYTORCH_INDEX = f"{PREFIX}PYTORCH_INDEX"
"""The address of PyTorch's indexes, where a mirror has them."""
OF_WORKERS = (CONTROLLER, SOURCE, SEARCHED)
OTHERS = (LEASES, LEASED, PYTORCH_INDEX, *OF_WORKERS)
"""All of them. None has an option."""
OF_THE_CHECKOUT = tuple(f"{PREFIX}{name}" for name in ("GOLDEN", "RELIABILITY", "FAULTS_INSIDE"))
"""Those of the tests and benchmarks in the checkout."""
