"""The workflows that are ready to copy ask for options and commands that there are."""

import json
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ipexperf.commands import command_line
from ipexperf.plan import options

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "docs" / "ci").iterdir())
KUBERAY = ROOT / "docs" / "ci" / "kuberay.yaml"
DOCKERFILE = ROOT / "docs" / "ci" / "Dockerfile.xpu"
WORKFLOWS = [path for path in FILES if path not in (KUBERAY, DOCKERFILE) and "pull" not in path.name]
"""Of pull requests: tests/tools/forge."""
PAGES = ("reference/report.md", "how-to/run-a-fleet.md")
THEIRS = {"--junitxml", "-q"}
"""The options of pytest itself."""


def commands(text: str, program: str) -> list[list[str]]:
    """The command lines that start a program, up to what a shell does with them."""
    found = re.findall(rf"\.venv/bin/{program} ([^\n]*)", text)
    return [shlex.split(re.split(r" (?:>|\|\|?|&&?)", line)[0]) for line in found]


def unknown(words: list[str]) -> list[str]:
    """The options that nobody declares."""
    known = {flag for option in options.OPTIONS for flag in (option.flag, option.short)} | THEIRS
    return [word for word in words if word.startswith("-") and word.split("=")[0] not in known]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_asks_for_what_there_is(path: Path) -> None:
    """Each measures, draws its report, and keeps its history beyond the job."""
    text = path.read_text()
    ours = commands(text, "ipexperf")
    behind = [words[words.index("--") + 1 :] for words in ours if "--" in words]
    measured = [*commands(text, "pytest"), *(words for words in behind if words[0] != "git")]
    assert measured
    for words in measured:
        assert unknown(words) == []
    reported = [word for words in measured for word in words if word.startswith("--perf-report=")]
    assert reported or any(words[:2] == ["report", "--html"] for words in ours)
    for words in ours:
        command_line.make_parser().parse_args(words)
    assert "IPEXPERF_DB" in text
    assert set(re.findall(r"IPEXPERF_(\w+)", text)) <= {one.variable[9:] for one in options.OPTIONS}


def test_every_workflow_is_on_its_page() -> None:
    """And the pages name no other."""
    pages = "".join((ROOT / "docs" / page).read_text() for page in PAGES)
    assert set(re.findall(r"\]\(\.\./ci/([\w.-]+)\)", pages)) == {path.name for path in FILES}


def test_the_image_for_intel_gpus_has_what_the_page_installs() -> None:
    """And measures with options that there are."""
    text, page = DOCKERFILE.read_text(), (ROOT / "docs/how-to/first-run-on-an-intel-gpu.md").read_text()
    [packages] = re.findall(r"apt-get install (.*libze-intel-gpu1.*)", page)
    assert set(packages.split()) <= set(text.split())
    [words] = re.findall(r"^CMD (.*)$", text, re.MULTILINE)
    assert unknown(json.loads(words)) == []
    assert set(re.findall(r"IPEXPERF_(\w+)", text)) <= {one.variable[9:] for one in options.OPTIONS}


def test_the_containers_of_kuberay_run_commands_that_there_are() -> None:
    """They join the fleet under their node's name, keep what was not collected on their node, and end with Ray."""
    yaml = pytest.importorskip("yaml", reason="needs PyYAML, which Ray brings: pip install 'ipexperf[fleet]'")
    cluster: dict[str, Any] = yaml.safe_load(KUBERAY.read_text())
    assert cluster["metadata"]["annotations"] == {"ray.io/overwrite-container-cmd": "true"}
    (head,) = cluster["spec"]["headGroupSpec"]["template"]["spec"]["containers"]
    assert head["command"][0] == "ipexperf"
    assert command_line.make_parser().parse_args(head["command"][1:]).head_only
    (group,) = cluster["spec"]["workerGroupSpecs"]
    (host,) = group["template"]["spec"]["containers"]
    assert host["command"][0] == "ipexperf"
    joined = command_line.make_parser().parse_args(host["command"][1:])
    assert (joined.address, joined.name, joined.block) == ("$(RAY_ADDRESS)", "$(NODE)", True)
    assert "NODE" in {one["name"] for one in host["env"]}  # RAY_ADDRESS is KubeRay's
    assert f"{joined.folder}/.ipexperf/fleet" in {mount["mountPath"] for mount in host["volumeMounts"]}
    assert host["resources"]["limits"] == host["resources"]["requests"]
    for container in (head, host):
        assert container["livenessProbe"] == container["readinessProbe"] == {"exec": {"command": ["true"]}}
        variables = {name[9:] for name in re.findall(r"IPEXPERF_\w+", json.dumps(container["env"]))}
        assert variables <= {one.variable[9:] for one in options.OPTIONS} | {"LEASES"}


@pytest.mark.process
def test_the_job_of_slurm_is_a_script() -> None:
    """Its options are those that its first lines set, and bash can read it."""
    path = ROOT / "docs" / "ci" / "slurm-fleet.sbatch"
    subprocess.run(["bash", "-n", str(path)], check=True)
    asked = re.findall(r"^#SBATCH --([\w-]+)", path.read_text(), re.MULTILINE)
    assert {"nodes", "exclusive", "mem", "signal"} <= set(asked)
