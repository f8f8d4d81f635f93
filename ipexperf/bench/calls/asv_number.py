"""A program: a benchmark of asv that tells a number, run as asv runs it. Needs `asv_runner` alone."""

import json
import math
import os
import statistics
import sys
from multiprocessing import get_context
from pathlib import Path

from asv_runner import discovery, run, setup_cache


def main(folder: str, name: str, out: str) -> None:
    """Write the number of a benchmark of this folder, with its unit, as Perfherder does: less is better, as in asv."""
    root = os.path.abspath(folder)  # noqa: PTH100 - as asv names it
    benchmark = discovery.get_benchmark_from_name(root, name)
    own = Path(out).with_name("own")  # beside it lies nothing that outlives this run
    own.mkdir()
    os.chdir(own)
    if benchmark.setup_cache_key is not None:  # in a process whose memory is not that of the benchmark
        made = get_context("fork").Process(target=setup_cache._setup_cache, args=((root, name, "{}"),))  # noqa: SLF001
        made.start()
        made.join()
    run._run((root, name, "{}", "None", "result"))  # noqa: SLF001 - what asv calls
    value = json.loads(Path("result").read_text())
    if isinstance(value, dict):
        value = statistics.median(value["samples"])
    if not math.isfinite(value):
        sys.exit("it is skipped, or told no number")
    suite = {"name": benchmark.type, "value": value, "unit": benchmark.unit}
    Path(out).write_text(json.dumps({"framework": {}, "suites": [suite]}))


if __name__ == "__main__":
    main(*sys.argv[1:])
