"""What the CPU says of 64 MiB that are taken and given back and 8 that are kept, where nothing else is."""

import json
import sys

from ipexperf.bench.devices.cpu import Cpu

MIB = bytes(range(256)) * 4096


def main() -> None:
    device = Cpu()
    kept = bytearray(MIB) * 32
    device.reset_memory()
    told = {"kept": len(kept), "before": device.metrics(lambda: None, 1)["library_memory"]}
    told["idle"] = device.memory()["peak_memory"]
    taken = bytearray(MIB) * 64
    del taken
    still = bytearray(MIB) * 8
    found = device.memory()
    told |= {"held": found["held_memory"], "still": len(still)}
    told |= {"peak": found["peak_memory"], "after": device.metrics(lambda: None, 1)["library_memory"]}
    json.dump(told, sys.stdout)


if __name__ == "__main__":
    main()
