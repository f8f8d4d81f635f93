"""The checks of `ipexperf doctor` on a machine made of files."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from ipexperf.bench.machine import cards
from ipexperf.bench.machine.facts import PYTHON_H, Facts
from ipexperf.conduct import machine_checks
from ipexperf.conduct.machine_checks import CheckedMachine, MachineFinding

PACKAGES = {"torch": "2.8.0", "torchvision": "0.23.0", "intel-extension-for-pytorch": "2.8.0"}
FACTS = Facts(
    "/env/bin/python",
    PACKAGES,
    frozenset({"avx2", "avx512_bf16", "amx_tile"}),
    compiler="/usr/bin/g++",
    headers=frozenset({PYTHON_H}),
    iomp5="/x.so",
)
CPUS = machine_checks.CPUS
FILES = {
    **{f"{CPUS}/cpu{core}/cpufreq/scaling_governor": "performance" for core in range(4)},
    **{f"{CPUS}/cpu{core}/topology/thread_siblings_list": f"{core % 4},{core % 4 + 4}" for core in range(4)},
    f"{CPUS}/intel_pstate/no_turbo": "1",
    "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never",
    "sys/fs/cgroup/cpu.max": "max 100000",
    "proc/loadavg": "0.10 0.20 0.30 1/200 4242",
    "usr/lib/libjemalloc.so.2": "",
}


@pytest.fixture
def good(tmp_path: Path) -> CheckedMachine:
    """A machine of four cores with which nothing is wrong."""
    there = CheckedMachine(tmp_path, (0, 1, 2, 3), FACTS, {})
    put(there, FILES)
    return there


def put(there: CheckedMachine, files: dict[str, str]) -> None:
    for path, text in files.items():
        (there.root / path).parent.mkdir(parents=True, exist_ok=True)
        (there.root / path).write_text(text + "\n")


def found(there: CheckedMachine, name: str) -> MachineFinding:
    [finding] = [finding for finding in machine_checks.run_checks(there) if finding.name == name]
    return finding


def test_nothing_is_wrong_with_a_good_machine(good: CheckedMachine) -> None:
    assert {finding.state for finding in machine_checks.run_checks(good)} == {"ok"}


@pytest.mark.parametrize(
    ("files", "name", "told", "advice"),
    [
        ({f"{CPUS}/cpu2/cpufreq/scaling_governor": "powersave"}, "governor", "performance, powersave", "cpupower"),
        ({f"{CPUS}/intel_pstate/no_turbo": "0"}, "turbo", "on", "echo 1 > /sys/devices/system/cpu/intel_pstate"),
        ({"sys/kernel/mm/transparent_hugepage/enabled": "always madvise [never]"}, "huge pages", "never", "madvise"),
        (
            {"sys/fs/cgroup/cpu.max": "150000 100000", "sys/fs/cgroup/cpu.stat": "nr_periods 9\nnr_throttled 7"},
            "CPU limit",
            "1.5 CPUs of time for 4 cores, throttled 7 times so far",
            "--perf-placement threads=1,",
        ),
        ({"proc/loadavg": "3.50 1 1 2/200 4242"}, "other work", "a load of 3.5 on 4 cores", "wait"),
    ],
)
def test_each_bad_kernel_setting_is_one_finding_with_its_remedy(
    good: CheckedMachine, files: dict[str, str], name: str, told: str, advice: str
) -> None:
    """Changing one thing in a good machine makes exactly one finding `wrong`."""
    put(good, files)
    wrong = found(good, name)
    assert (wrong.state, wrong.found) == ("wrong", told)
    assert advice in wrong.advice
    assert sum(finding.state == "wrong" for finding in machine_checks.run_checks(good)) == 1


@pytest.mark.parametrize(
    ("facts", "variables", "name", "state", "told"),
    [
        ({"packages": {**PACKAGES, "torch": "2.9.1"}}, {}, "IPEX", "wrong", "IPEX 2.8.0 is built for torch 2.8"),
        ({"packages": {}}, {}, "torch", "wrong", "torch not installed in /env/bin/python"),
        ({"packages": {"torch": "2.9.1", "torchvision": "0.2"}}, {}, "packages", "note", "intel-extension-for-pytorch"),
        ({"iomp5": ""}, {}, "OpenMP", "note", "libiomp5.so"),
        ({"compiler": ""}, {}, "compiler", "note", "C++ compiler"),
        ({"headers": frozenset()}, {}, "compiler", "note", "install python3-dev"),
        ({"cpu_flags": frozenset({"avx2"})}, {}, "AMX", "note", "bf16 is emulated"),
        ({"cpu_flags": frozenset({"avx2", "avx512_bf16"})}, {}, "AMX", "note", "bf16 runs on AVX-512"),
        ({"cpu_flags": frozenset({"asimd", "bf16"})}, {}, "Arm BF16", "ok", "there"),
        ({"cpu_flags": frozenset({"asimd"})}, {}, "Arm BF16", "note", "bf16 is emulated"),
        ({"cpu_flags": FACTS.cpu_flags | {"hypervisor"}}, {}, "virtual machine", "note", "yes"),
        ({}, {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE"}, "AMX", "wrong", "masked"),
        ({}, {"ATEN_CPU_CAPABILITY": "avx2"}, "instructions", "wrong", "masked by ATEN_CPU_CAPABILITY=avx2"),
        ({}, {"OMP_WAIT_POLICY": "ACTIVE"}, "waiting threads", "wrong", "OMP_WAIT_POLICY=ACTIVE"),
        ({}, {"KMP_BLOCKTIME": "200"}, "waiting threads", "wrong", "KMP_BLOCKTIME=200"),
        ({}, {"OMP_NUM_THREADS": "1"}, "threads", "note", "OMP_NUM_THREADS=1 on 4 cores"),
    ],
)
def test_missing_software_is_reported(
    good: CheckedMachine, facts: dict[str, object], variables: dict[str, str], name: str, state: str, told: str
) -> None:
    """Missing packages, versions that do not fit, and instructions that are missing or hidden."""
    there = replace(good, facts=replace(FACTS, **facts), variables=variables)  # type: ignore[arg-type]
    assert found(there, name).state == state
    assert told in found(there, name).found


def test_a_setting_that_cannot_be_read_is_not_wrong(tmp_path: Path) -> None:
    """A virtual machine or a container may show nothing. The finding says that it is unknown."""
    there = CheckedMachine(tmp_path, (0, 1), FACTS, {})
    states = {finding.name: finding.state for finding in machine_checks.run_checks(there)}
    unknown = ("governor", "turbo", "huge pages", "allocator")
    assert [states[name] for name in unknown] == ["note"] * 4
    assert "wrong" not in states.values()


def test_the_checks_run_on_this_machine() -> None:
    """Whatever is found here, there is something to say of each thing."""
    there = CheckedMachine(Path("/"), tuple(sorted(os.sched_getaffinity(0))), FACTS, os.environ)
    names = [finding.name for finding in machine_checks.run_checks(there)]
    assert {"governor", "turbo", "cores", "CPU limit", "AMX"} <= set(names)
    assert len(names) == len(set(names))


def test_a_card_is_named_with_what_torch_and_the_kernel_tell_of_it(good: CheckedMachine) -> None:
    """Its memory, drivers and limits; what it has not; and what is missing to compile for it."""
    arc = {"name": "Arc A770", "memory": 15473 * 2**20, "driver": "1.6.32567", "float64": False}
    address = "sys/bus/pci/devices/0000:03:00.0"
    files = {"vendor": "0x8086", "class": "0x030000", "hwmon/hwmon1/power1_max": "225000000"}
    files.update({"tile0/gt0/freq0/min_freq": "300", "tile0/gt0/freq0/max_freq": "2400", "current_link_width": "16"})
    put(good, {f"{address}/{name}": text for name, text in files.items()})
    taken = good.root / "sys/bus/pci/drivers/xe"
    taken.mkdir(parents=True)
    (good.root / address / "driver").symlink_to(taken)
    there = replace(good, facts=replace(FACTS, accelerators={"xpu": ""}, cards={"xpu": [arc]}))
    assert found(there, "xpu 0").found == "Arc A770, 15.1 GiB, driver 1.6.32567, no float64: fp16 training is left out"
    assert found(there, "0000:03:00.0").found == "kernel driver xe, at most 225 W, at most 2400 MHz, 16 PCIe lanes"
    low = good.root / address / "tile0/gt0/freq0/min_freq"
    floats = found(there, "clock of 0000:03:00.0")
    assert (floats.state, floats.found) == ("note", "it floats from 300 to 2400 MHz")
    assert floats.advice.endswith(f"echo 2400 | sudo tee {low}")
    low.write_text("2400")
    fixed = found(there, "clock of 0000:03:00.0")
    assert (fixed.state, fixed.found, fixed.advice) == ("ok", "fixed at 2400 MHz", "")
    compiling = found(there, "compiling for xpu")
    assert (compiling.state, "install libze-dev and intel-ocloc" in compiling.found) == ("note", True)


def test_lanes_are_those_of_the_slot(good: CheckedMachine) -> None:
    """An Arc hangs in a switch of its own, where one lane is told of it, whatever its slot has."""
    folders = ("0000:00:01.0", "0000:01:00.0", "0000:02:01.0", "0000:03:00.0")
    place, rows = "sys/devices/pci0000:00", ("0x060400", "0x060400", "0x060400", "0x030000")
    for folder, kind, width in zip(folders, rows, ("16", "4", "1", "1"), strict=True):
        place = f"{place}/{folder}"
        put(good, {f"{place}/{name}": text for name, text in (("class", kind), ("current_link_width", width))})
    put(good, {f"{place}/vendor": "0x8086"})
    (good.root / "sys/bus/pci/devices").mkdir(parents=True, exist_ok=True)
    (good.root / "sys/bus/pci/devices/0000:03:00.0").symlink_to(good.root / place)
    assert cards.described("0000:03:00.0", good.root)["pci_lanes"] == "4"
    (good.root / place / "vendor").write_text("0x10de")
    assert cards.described("0000:03:00.0", good.root)["pci_lanes"] == "1"


def test_a_card_that_cannot_be_used_is_wrong_with_its_cure(good: CheckedMachine) -> None:
    reason = "torch sees no XPU: there is no /dev/dri/renderD*: a container needs --device /dev/dri"
    finding = found(replace(good, facts=replace(FACTS, accelerators={"xpu": reason})), "xpu")
    assert (finding.state, finding.found) == ("wrong", reason)
