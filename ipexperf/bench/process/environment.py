"""The environment of a launch: hardware, software, variables, source. `machine_key` names comparable machines."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import platform
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ipexperf.bench.declaration import answer
from ipexperf.bench.device import Device
from ipexperf.bench.lazy import torch
from ipexperf.bench.machine import control_groups, facts, inventory, kernel_files, libraries, placement
from ipexperf.bench.machine import source as users_files
from ipexperf.redaction import tuned

ISA = re.compile(r"^(amx|avx|fma|f16c|sse4|sve|asimd|bf16|i8mm)", re.ASCII)
DETACHED = "HEAD"
"""Git's answer in place of a branch if a commit is checked out, as in CI systems."""
BRANCHES = (
    "GITHUB_HEAD_REF",  # of a pull request, whose GITHUB_REF_NAME is that of a merge
    "GITHUB_REF_NAME",
    "CI_COMMIT_REF_NAME",  # GitLab
    "CHANGE_BRANCH",  # Jenkins, of a pull request, whose BRANCH_NAME is its number
    "BRANCH_NAME",
    "BUILD_SOURCEBRANCHNAME",  # Azure
)
"""Variables in which CI systems report the branch, in order of preference."""
SWITCHES = {
    "boost": "/sys/devices/system/cpu/cpufreq/boost",
    "no_turbo": "/sys/devices/system/cpu/intel_pstate/no_turbo",
    "smt": "/sys/devices/system/cpu/smt/control",
    "huge_pages": "/sys/kernel/mm/transparent_hugepage/enabled",
    "huge_pages_defrag": "/sys/kernel/mm/transparent_hugepage/defrag",
    "swappiness": "/proc/sys/vm/swappiness",
    "numa_balancing": "/proc/sys/kernel/numa_balancing",
}
"""Files in which the kernel says how the machine is set, by the name of the fact."""
SWITCHES_OF_CORES = {
    "governor": "scaling_governor",
    "highest_khz": "scaling_max_freq",
    "energy_preference": "energy_performance_preference",
}
"""The same, in the folder `cpufreq` of each core."""
POLICIES = {os.SCHED_OTHER: "other", os.SCHED_BATCH: "batch", os.SCHED_IDLE: "idle", os.SCHED_FIFO: "fifo"}
"""The names of the kernel's policies by which a process gets its cores."""
UNITS = ("max_compute_units", "multi_processor_count")
"""Properties that say how many parts of a card a process may use."""


def _of_cpu(field: str) -> str | None:
    match = re.search(rf"^{field}\s*: (.*)$", kernel_files.text("/proc/cpuinfo") or "", re.MULTILINE)
    return match.group(1) if match else None


def _arm_core() -> str:
    """Return what Arm's kernel has in place of a name: the numbers of the maker and of the core."""
    maker, part = _of_cpu("CPU implementer"), _of_cpu("CPU part")
    return f"Arm core {part} of maker {maker}" if maker and part else ""


def _of_cores(cores: Iterable[int], file: str) -> str | None:
    """Return what this file of `cpufreq` says, of all these cores: a comma list if they differ."""
    answers = {kernel_files.text(f"/sys/devices/system/cpu/cpu{core}/cpufreq/{file}") for core in cores}
    return ", ".join(sorted(filter(None, answers))) or None


def _mitigations(folder: Path = Path("/sys/devices/system/cpu/vulnerabilities")) -> list[str]:
    """Return the faults of the processor that the kernel works around, which costs time."""
    return sorted(
        file.name for file in folder.glob("*") if (kernel_files.text(str(file)) or "").startswith("Mitigation")
    )


def hardware() -> dict[str, Any]:
    """Return the hardware that this process may use. Needs no torch."""
    meminfo = dict(re.findall(r"^(\w+):\s+(\d+)", kernel_files.text("/proc/meminfo") or "", re.MULTILINE))
    affinity = placement.allowed()
    return {
        "cpu": _of_cpu("model name") or _arm_core() or platform.processor() or platform.machine(),
        "isa": sorted(flag for flag in facts.cpu_flags() if ISA.match(flag)),
        "cores": len(affinity),
        "affinity": affinity,
        "cores_total": os.cpu_count(),
        "memory": int(meminfo.get("MemTotal", 0)) * 1024,
        "swap": int(meminfo.get("SwapTotal", 0)) * 1024,
        **{name: _of_cores(affinity, file) for name, file in SWITCHES_OF_CORES.items()},
        "frequency_khz": _of_cores(affinity[:1], "scaling_cur_freq"),
        **{name: kernel_files.text(path) for name, path in SWITCHES.items()},
        "microcode": _of_cpu("microcode"),
        "mitigations": _mitigations(),
        "nice": os.getpriority(os.PRIO_PROCESS, 0),
        "scheduler": POLICIES.get(os.sched_getscheduler(0), "another"),
        "kernel": platform.release(),
        "memory_limit": control_groups.memory_limit(kernel_files.text),
        "cpu_limit": control_groups.cpu_limit(kernel_files.text),
        "host": platform.node(),
    }


def machine_key(machine: dict[str, Any]) -> str:
    """Return a key of the hardware. Times with the same key may be compared. Software is not part of it."""
    accelerator = machine.get("accelerator") or {}
    parts = {
        "cpu": machine["cpu"],
        "isa": machine["isa"],
        "cores": machine["cores"],
        "memory_gib": round(machine["memory"] / 2**30),
        "accelerator": accelerator.get("properties"),
    }
    if accelerator.get("properties"):
        # One card has several sizes under one name: a tile or all of them, a slice or the whole.
        parts["accelerator_gib"] = round((accelerator.get("memory") or 0) / 2**30)
        parts["accelerator_units"] = next((accelerator[name] for name in UNITS if name in accelerator), None)
    # A container may get the time of fewer cores than it sees.
    cores = round(control_groups.cores(machine.get("cpu_limit")), 2)
    if cores < machine["cores"]:
        parts["cpu_limit"] = cores
    digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:8]
    words = re.sub(r"\(.*?\)|@.*|CPU|Processor", " ", accelerator.get("properties") or machine["cpu"])
    name = re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")[:32].strip("-")
    return f"{name}-{machine['cores']}c-{parts['memory_gib']}g-{digest}"


def software() -> dict[str, Any]:
    """Return versions and builds, as reported by the libraries themselves."""
    versions: dict[str, Any] = {"python": platform.python_version(), "executable": sys.executable}
    versions["libc"] = os.confstr("CS_GNU_LIBC_VERSION")
    versions.update(libraries.loaded())
    versions["at_start"] = {**libraries.modules(), **libraries.preloaded(libraries.maps())}
    if "torch" not in sys.modules:
        return {**versions, "torch": None, "ipex": None}
    config = torch.__config__.show()
    ipex = sys.modules.get("intel_extension_for_pytorch")
    torchvision = sys.modules.get("torchvision")
    match = {name: re.search(pattern, config) for name, pattern in _BUILD.items()}
    return {
        **versions,
        "torch": torch.__version__,
        "torchvision": torchvision.__version__ if torchvision else None,
        "ipex": ipex.__version__ if ipex else None,
        "onednn": match["onednn"].group(1) if match["onednn"] else None,
        "mkl": match["mkl"].group(1) if match["mkl"] else None,
        "torch_build": config,
        "capability": torch.backends.cpu.get_cpu_capability(),
        "threads": torch.get_num_threads(),
        "interop_threads": torch.get_num_interop_threads(),
    }


_BUILD = {"onednn": r"MKL-DNN v([\w.]+)", "mkl": r"(?:Math Kernel Library|MKL) Version ([\w.]+)"}


def source(folder: Path, variables: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """Return commit, branch, and whether there are uncommitted changes, with digests. All are None outside git."""
    ask = functools.partial(users_files.git, folder)

    def word(*arguments: str) -> str | None:
        reply = ask(*arguments)
        return None if reply is None else os.fsdecode(reply).strip()

    changes = ask("status", "--porcelain", "--untracked-files=no")
    branch = word("rev-parse", "--abbrev-ref", "HEAD")
    if branch == DETACHED:
        branch = next((name for variable in BRANCHES if (name := variables.get(variable))), DETACHED)
    content = ask("diff", "HEAD", "--binary", "--no-ext-diff", "--no-textconv", "--no-color") if changes else None
    names = os.fsdecode(ask("diff", "HEAD", "--name-only", "--no-renames", "-z") or b"").split("\0")[:-1]
    return {
        "commit": word("rev-parse", "HEAD"),
        "branch": branch,
        "dirty": None if changes is None else bool(changes),
        **({"changes": hashlib.sha256(content).hexdigest()[:8]} if content else {}),
        **({"edited": users_files.digests(Path(word("rev-parse", "--show-toplevel") or ""), names)} if names else {}),
    }


def of_machine() -> dict[str, Any]:
    """Return the environment as far as this machine tells it, without any software."""
    machine = {**hardware(), "accelerator": None, "threads": None}
    software = {"torch": None, "ipex": None}
    return {"machine_key": machine_key(machine), "hardware": machine, "software": software, "variables": {}}


def document(device: Device) -> dict[str, Any]:
    """Return the environment of this process, after the case was prepared."""
    machine = hardware()
    described = answer(Device, device, "describe")
    machine["accelerator"] = {"name": device.name, **described} if device.name != "cpu" else None
    versions = software()
    installed = inventory.gather()
    versions["packages"] = installed.versions
    if described.get("driver"):
        versions["accelerator"] = {"driver": described["driver"]}  # of what was measured, though the card tells it
    machine["threads"] = versions.get("threads")
    return {
        "machine_key": machine_key(machine),
        "hardware": machine,
        "software": versions,
        "variables": tuned(os.environ),
        "libraries": libraries.system_digests(libraries.maps()),
        **users_files.document(),
        "inventory": installed.to_json(),
    }
