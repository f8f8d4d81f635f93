"""Start code of `bench` under any interpreter, by path: `PYTHON boot.py worker`, `PYTHON boot.py facts`.

The package is loaded from this file's folder, and nothing else of our environment: with our site-packages on its
path, the other interpreter would import our torch in place of the one to be measured.
"""

import importlib
import importlib.util
import runpy
import sys
from pathlib import Path

ENTRIES = {
    "worker": "ipexperf.bench.process.worker",
    "server": "ipexperf.bench.process.server",
    "facts": "ipexperf.bench.machine.facts",
    "inventory": "ipexperf.bench.machine.inventory",
    "placement": "ipexperf.bench.machine.placement",
}


def load() -> None:
    """Load ipexperf from this file's folder."""
    this_file = Path(__file__).resolve()
    package = this_file.parent.parent
    # Python put this folder first on the path, where `data` and `models` would shadow modules of others.
    sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != this_file.parent]
    spec = importlib.util.spec_from_file_location(
        "ipexperf", package / "__init__.py", submodule_search_locations=[str(package)]
    )
    if spec is None or spec.loader is None:
        raise SystemExit(f"ipexperf is not at {package}")
    module = importlib.util.module_from_spec(spec)
    sys.modules["ipexperf"] = module
    spec.loader.exec_module(module)
    importlib.import_module("ipexperf.bench.machine.libraries")  # first: it notes what was imported before us
    source = importlib.import_module("ipexperf.bench.machine.source")
    source.arrange()
    source.watch()


def main() -> None:
    """Run the named entry."""
    load()
    entry = ENTRIES[sys.argv.pop(1)]
    runpy.run_module(entry, run_name="__main__", alter_sys=False)


if __name__ == "__main__":
    main()
elif __name__ == "__mp_main__":
    load()  # spawned from here, such as a rank: load ipexperf from where the parent did
