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
FLEET_FOLDER = f"{PREFIX}FLEET_FOLDER"
"""Set in Ray's processes of a host: where it keeps weights and the like."""
FLEET_ADDRESS = f"{PREFIX}FLEET_ADDRESS"
"""Set in the same processes: the address of their fleet, as `fleet up` printed it or `fleet join` was given it."""
FLEET_ENVIRONMENT = f"{PREFIX}FLEET_ENVIRONMENT"
"""Set in the same processes: all variables that the host was joined with, as JSON. Ray changes some for its own."""
OF_WORKERS = (CONTROLLER, SOURCE, SEARCHED)
OF_FLEETS = (FLEET_FOLDER, FLEET_ADDRESS, FLEET_ENVIRONMENT)
OTHERS = (LEASES, LEASED, PYTORCH_INDEX, *OF_WORKERS, *OF_FLEETS)
"""All of them. None has an option."""
OF_THE_CHECKOUT = tuple(f"{PREFIX}{name}" for name in ("GOLDEN", "RELIABILITY", "FAULTS_INSIDE"))
"""Those of the tests and benchmarks in the checkout."""
