"""A script that shows a slowdown without ipexperf: both arms as processes that take turns, in at most 60 lines."""

from __future__ import annotations

import itertools
import json
import os
import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from ipexperf.bench import registry
from ipexperf.bench.cell import Cell
from ipexperf.bench.machine import source
from ipexperf.bench.machine.source import Replaced
from ipexperf.bench.networks import own_target
from ipexperf.case import NetworkCase, networks
from ipexperf.compare.arm import Arm
from ipexperf.compare.walk import Suite
from ipexperf.conduct import process
from ipexperf.dtypes import quantised
from ipexperf.proof import tracing
from ipexperf.redaction import recorded
from ipexperf.variables import PREFIX

NAME = "reproduce.py"
OUTPUTS = "outputs = model(*inputs)"
"""The line of a script for inference that is the step."""
TURN_SECONDS, TURNS, WARM_SECONDS = 0.2, 11, 1.0

_FRAME = '''"""{title}, without ipexperf: both arms take turns, and how much longer b takes is printed."""
import gc, os, statistics, subprocess, sys, time
{imports}ARMS = {arms}

def steps():
    """Yield once a step. Each line of standard input asks for a turn, and is answered with its seconds a step."""
    gc.freeze()  # what is there already would be looked through again and again
    answers, end = os.fdopen(int(sys.argv[2]), "w", buffering=1), time.perf_counter() + {warm}
    while time.perf_counter() < end:
        yield
    for _ in os.fdopen(os.dup(0)):
        begin, count = time.perf_counter(), 0
        while (now := time.perf_counter()) < begin + {turn}:
            yield{synchronise}
            count += 1
        print((now - begin) / count, file=answers)

{work}
def started(name):
    python, folder, variables = ARMS[name]
    environment = {{name: value for name, value in {{**os.environ, **variables}}.items() if value is not None}}
    read, write = os.pipe()
    worker = subprocess.Popen([python, __file__, name, str(write)], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                              pass_fds=[write], cwd=folder, env=environment, text=True)
    os.close(write)
    return worker, os.fdopen(read)

if len(sys.argv) > 1: sys.exit(work())
workers, times = {{name: started(name) for name in ARMS}}, {{name: [] for name in ARMS}}
for turn in range({turns}):
    for name in sorted(workers, reverse=turn % 2):
        print("go", file=workers[name][0].stdin, flush=True)
        times[name].append(float(workers[name][1].readline()))
a, b = (statistics.median(times[name]) for name in "ab")
ratio = statistics.median(y / x for x, y in zip(times["a"], times["b"]))
print(f"a {{a:.4g}} s, b {{b:.4g}} s a step: b takes {{ratio:.3f}} times as long")
'''


def of(a: Arm, b: Arm, suite: Suite | None) -> tuple[str, str]:
    """Return the script for two arms of a case, or an empty text and why there is none."""
    if cases := networks((a.case, b.case)):
        bodies = [_of_network(case) for case in cases]
        if not all(bodies):
            kinds = " and ".join(dict.fromkeys(case.mode for case in cases))
            return "", f"{kinds} of {cases[-1].model} is not written down as a short script"
        work = _work(bodies)
    else:
        work = _work([_of_test(b.case.name)])
    folder = str(suite.folder if suite else Path.cwd())
    names = _names((a, b))
    arms = {name: _described(side, names, folder) for name, side in (("a", a), ("b", b))}
    lines = ",\n".join(f"    {json.dumps(name)}: {arm!r}" for name, arm in arms.items())
    device = registry.devices.get(b.case.device)
    synchronise = f"\n            torch.{device.name}.synchronize()" if device.accelerator else ""
    return _FRAME.format(
        title=b.case.id.replace('"', "'").replace("\\", "/"),
        arms=f"{{\n{lines},\n}}",
        warm=WARM_SECONDS,
        turn=TURN_SECONDS,
        turns=TURNS,
        imports="import torch\n" if device.accelerator else "",
        synchronise=synchronise,
        work=work,
    ), ""


def _described(side: Arm, names: Collection[str], folder: str) -> tuple[str, str, dict[str, str | None]]:
    """An arm: its interpreter, the folder in which it runs, and these variables. None: it does not have one."""
    conditions = side.conditions
    replaced = Replaced.of(conditions.variables)
    tree = replaced.by if replaced else str(source.tree())
    here = Path(folder)
    if replaced and here.is_relative_to(replaced.tree):
        there = Path(tree) / here.relative_to(replaced.tree)
        folder = str(there if there.is_dir() else tree)
    searched = [part for part in source.searched().split(os.pathsep) if part]
    if replaced:
        searched = [str(replaced.moved(Path(part))) for part in searched]
        searched = [*(str(Path(tree, path)) for path in replaced.paths), *searched]
    seen = process.environment_of(conditions.python, conditions.variables)
    variables: dict[str, str | None] = {name: seen.get(name) for name in sorted(names)}
    if threads := conditions.settings.threads:
        variables["OMP_NUM_THREADS"] = str(threads)
    variables["PYTHONPATH"] = os.pathsep.join(dict.fromkeys([folder, *searched]))
    return conditions.python or sys.executable, folder, variables


def _names(sides: Sequence[Arm]) -> set[str]:
    """The variables that say what the arms run: those that the shell has otherwise, and those that tune libraries."""
    seen = [process.environment_of(side.conditions.python, side.conditions.variables) for side in sides]
    names = {name for arm in seen for name in {*arm, *os.environ} if arm.get(name) != os.environ.get(name)}
    names |= process.tuned_by_user(os.environ).keys()
    ours = {name for name in names if name.startswith(PREFIX)} | set(process.OFFLINE)
    # Not a secret: the script is handed to others.
    return {
        name for name in names - ours if all(recorded(name, arm.get(name, "")) == arm.get(name, "") for arm in seen)
    }


def _work(bodies: Sequence[Sequence[str]]) -> str:
    """The function that steps. From the first line on that differs, each arm has its own part."""
    if len(bodies) == 1 or bodies[0] == bodies[1]:
        return "\n".join(["def work():", *(f"    {line}" for line in bodies[0]), ""])
    pairs = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(*bodies, strict=False))
    shared = [line for line, _ in pairs]
    while any(line.startswith(" ") for body in bodies for line in body[len(shared) :][:1]):
        shared.pop()  # a block is not split
    lines = [f"    {line}" for line in shared]
    for name, body in zip("ab", bodies, strict=True):
        if own := body[len(shared) :]:
            lines += [f'    if sys.argv[1] == "{name}":', *(f"        {line}" for line in own)]
    return "\n".join(["def work():", *lines, ""])


def _of_test(test: str) -> tuple[str, ...]:
    """The lines that run a test whose function is stepped by pytest alone, in place of any fixture that measures."""
    settings = ("-q", "-s", "-p", "no:ipexperf", "-p", "no:benchmark", "-p", "no:codspeed", "-p", "no:cacheprovider")
    return (
        "import pytest",
        "def call(function, *args, accelerator=None, **kwargs):",
        "    for _ in steps():",
        "        result = function(*args, **kwargs)",
        "    return result",
        "class Plugin:",
        "    def pytest_addoption(self, parser): parser.addini('ipexperf', 'options of the measurement', 'args')",
        "    @pytest.fixture",
        "    def benchmark(self): return call",
        "    perf = benchmark",
        f"pytest.main([{test!r}, {', '.join(map(repr, settings))}], plugins=[Plugin()])",
    )


def _of_network(case: NetworkCase) -> tuple[str, ...]:
    """The lines that build a network as its case does, and step it. Empty if they are not written down."""
    model, mode, stack = (
        registry.models.get(case.model),
        registry.modes.get(case.mode),
        registry.stacks.get(case.stack),
    )
    if mode.data_parallel:
        return ()
    lines = mode.script(Cell(**case.axes, knobs=case.knobs), stack)
    built, loss = _built(case), _loss(case) if mode.trains else ""
    if not lines or not built or (mode.trains and not loss):
        return ()
    last = dict(case.knobs).get("channels_last", "on" if model.channels_last else "off") == "on"
    layout = ".to(memory_format=torch.channels_last)" if last else ""
    moved = f'.to("{case.device}")' if case.device != "cpu" else ""
    return (
        "import torch",
        f'inputs, targets = torch.load(os.path.join(sys.path[0], sys.argv[1], "{tracing.BATCH}")).values()',
        *built,
        f"model = model.{'train' if mode.trains else 'eval'}(){moved}{layout}",
        *model.scripts.get(case.stack, ()),
        *(("calibration = [inputs]",) if quantised(case.dtype) else ()),
        *((loss, "batches = ((inputs, targets) for _ in steps())") if mode.trains else ()),
        *_stepping(lines),
    )


def _stepping(lines: Sequence[str]) -> Sequence[str]:
    """The lines of a user's script, with a loop around the step."""
    *before, last = lines
    if last.strip() != OUTPUTS:
        return lines  # a training, whose loop takes its batches from `steps`
    indent = last.removesuffix(OUTPUTS)
    return (*before, f"{indent}for _ in steps():", f"{indent}    {OUTPUTS}")


def _built(case: NetworkCase) -> tuple[str, ...]:
    """The lines that build the network. Empty for one of a hub."""
    model = registry.models.get(case.model)
    if model.target:
        target = own_target.parse(model.target)
        if target.hub:
            return ()
        return (*_imported(target), f"model = own.{target.callable_name}()")
    build: Any = model.build
    if build.__module__.startswith("ipexperf.zoo."):  # the network alone: nothing of this package measures
        searched = f"sys.path.append({str(source.PACKAGE.parent)!r})"  # at the end: another arm's packages come first
        return (searched, f"from {build.__module__} import {build.__name__}", f"model = {build.__name__}()")
    file = str(sys.modules[build.__module__].__file__)
    return (
        *_run(os.path.relpath(file) if Path(file).is_relative_to(Path.cwd()) else file),
        f"model = own.{build.__name__}()",
    )


def _imported(target: own_target.Target) -> tuple[str, ...]:
    """The lines that import a user's module as `own`."""
    return _run(target.location) if target.location.endswith(".py") else (f"import {target.location} as own",)


def _run(file: str) -> tuple[str, ...]:
    return ("import runpy, types", f"own = types.SimpleNamespace(**runpy.run_path({file!r}))")


def _loss(case: NetworkCase) -> str:
    """The line that defines `loss_of`, or an empty text if none does."""
    model = registry.models.get(case.model)
    if model.task == "classification":
        return "loss_of = lambda outputs, targets: torch.nn.functional.cross_entropy(outputs, *targets)"
    if not model.target:
        return ""
    name = own_target.LOSS
    own = f'getattr(own, "{own_target.parse(model.target).callable_name}_{name}", None) or own.{name}'
    return f"loss_of = lambda outputs, targets: ({own})(outputs, *targets)"
