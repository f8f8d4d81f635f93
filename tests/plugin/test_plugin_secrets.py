"""Secrets that are planted wherever a user has one stand in no file that a command writes, and in nothing it prints."""

import gzip
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from plugin_suite import CELL, PLUGIN, SHORT, Suite
from test_plugin_functions import QUICK

from ipexperf.bench.machine.inventory import gather

pytestmark = [pytest.mark.long, pytest.mark.process]

SHELL = """
MY_API_TOKEN={token}
DB_PASSWD={passwd}
PGPASSWORD={pg}
SERVICE_CREDENTIALS={credentials}
SESSION_ID={session}
AWS_SECRET_ACCESS_KEY={aws}
DATABASE_URL=postgresql://u:{database}@h/d
OMP_SECRET={tuning}
TORCH_HUB_TOKEN={hub}
CCL_KVS_IP_PORT={kvs}_80
PYTORCH_MIRROR=https://u:{mirror}@h/
ONEDNN_ANY=http://{onednn}@h
PYTORCH_ANY=q9w8e7r6t5y4u3i2o1p0{random}
PIP_INDEX_URL=http://u:{index}@127.0.0.1:9/simple
PIP_EXTRA_INDEX_URL=http://{extra}@127.0.0.1:9/simple
IPEXPERF_PYTORCH_INDEX=http://u:{pytorch}@127.0.0.1:9/whl
"""
TELL = """
import os

NAMES = "MY_API_TOKEN", "DB_PASSWD", "PGPASSWORD", "ARM_SECRET", "SERVICE_CREDENTIALS", "PRIVATE_PEM", "PIP_INDEX_URL"

def tell():
    for name in NAMES:
        print("it is", os.environ.get(name))
    print("curl --user-password {printed_option} -H 'Authorization: Bearer {header}' https://h/?access_key={query}&a=b")
    print("machine h login u password {netrc}", {{"client_secret": "{json}"}}, "https://u:{url}@h", flush=True)
"""
MODELS = """
import os
from ipexperf.bench import registry
from ipexperf.bench.registry import modes
from ipexperf.result import Check
from tell import tell

def spin():
    return sum(number * number for number in range(2000))

def model(name):
    return registry.model(name, size=1, batch_train=1, batch_infer=1, data="none", needs=(), trained=False)

@model("talkative")
def talkative():
    tell()
    return spin

@model("leaky")
def leaky():
    tell()
    raise RuntimeError("session_cookie={raised} of " + os.environ["MY_API_TOKEN"] + " at https://{raised_user}@h/")
"""
TESTS = """
import os
from tell import tell

def total():
    return sum(range(20000 if "ARM_SECRET" in os.environ else 2000))

def refuse():
    if "IPEXPERF_CONTROLLER" in os.environ:
        tell()
        raise RuntimeError("no " + os.environ["MY_API_TOKEN"])

def test_total(perf):
    perf(total)

def test_refuse(perf):
    perf(refuse)
"""
OPTIONS = """
def pytest_addoption(parser):
    for name in ("--api-token", "--password", "--my-auth"):
        parser.addoption(name)
    parser.addini("api_token", "")
    parser.addini("db_key", "")
"""
UV = "#!/bin/sh\necho error: Failed to fetch: $PIP_INDEX_URL $PIP_EXTRA_INDEX_URL >&2\nexit 1\n"
ARM = (
    "ARM_SECRET={arm} PYTORCH_MIRROR=https://u:{arm_mirror}@h PLAIN={arm_plain} CCL_KVS_X={arm_kvs} "
    "CCL_X='q1w2e3r4t5y6u7i8o9p0 {arm_random}'"
)
OWN = (
    "--api-token={equals} --password {separate} \"--my-auth='{quoted}'\" '--my-auth=two {spaced}' "
    "-o api_token={override} \"-oaddopts=--api-token {nested} --password='{nested_quoted}'\""
)
COMMANDS = {
    f"pytest test_suite.py {OWN} LEAKY --junitxml=junit.xml --perf-report=site": 1,
    f'pytest test_calls.py "--perf-against={ARM}" --perf-explain=pages --junitxml=calls.xml': 0,
    f'ipexperf ab PAIR --json --a "MY_KEY={{a}}" --b "{ARM}"': 0,
    "ipexperf nightly --folder nights -- SOUND --api-token {night}": 0,
    "ipexperf baseline accept last --replace --reason 'the token={reason} of https://{reason_user}@h'": 0,
    "ipexperf show first --json": 0,
    "ipexperf report --html html": 0,
    "ipexperf report --markdown first": 0,
    "ipexperf comment first": 0,
    "ipexperf cases --perf-python=lock:wanted.txt": 2,
    "ipexperf show --db postgresql://u:{server}@127.0.0.1:9/perf?sslpassword={server_query}": 2,
}
"""Each with its exit code."""


class Plants(dict[str, str]):
    """Secrets by the place where each is planted."""

    def __missing__(self, place: str) -> str:
        self[place] = f"s3kr1t{len(self):02}Zq"
        return self[place]


def read(path: Path) -> bytes:
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


@pytest.fixture
def plants(suite: Suite, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Plants:
    """Planted in a shell, a home, and in what the worker's code prints and raises."""
    plants, home = Plants(), tmp_path_factory.mktemp("home")
    files = {
        "tell.py": TELL,
        "models.py": MODELS,
        "uv": UV,
        "pip.conf": "[global]\nfind-links = http://u:{links}@127.0.0.1:9\n",
    }
    for name, text in files.items():
        (home / name).write_text(text.format_map(plants))
    (home / "uv").chmod(0o755)
    for line in SHELL.format_map(plants).split():
        monkeypatch.setenv(*line.split("=", 1))
    monkeypatch.setenv("PRIVATE_PEM", f"-----BEGIN KEY-----\n{plants['pem']}\n-----END KEY-----")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(home / "pip.conf"))
    monkeypatch.setenv("PATH", f"{home}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", f"{home}{os.pathsep}{os.environ['PYTHONPATH']}")
    (suite.path / "test_calls.py").write_text(TESTS)
    (suite.path / "conftest.py").write_text(f"{(suite.path / 'conftest.py').read_text()}{QUICK}{OPTIONS}")
    with (suite.path / "pytest.ini").open("a") as ini:
        ini.write(f"db_key = {plants['ini']}\n")
    suite.always("--perf-samples=3")
    lock = f"# ipexperf lock 1\n# python {gather().python}\n# platform {gather().platform}\nnowhere-to-be-found==1.0\n"
    (suite.path / "wanted.txt").write_text(lock)
    return plants


def words_of(command: str, suite: Suite, plants: Plants) -> list[str]:
    """The words of a command, with what each measures."""
    mine = f"--perf-load={suite.fake},{os.environ['PYTHONPATH'].split(os.pathsep)[0]}/models.py"
    cell, short = shlex.join([f"--perf-load={suite.fake}", "--model=tiny", *CELL]), shlex.join(SHORT)
    for name, options in {
        "LEAKY": f"{cell} {short} {mine} --model=tiny,leaky,talkative",
        "SOUND": f"{shlex.join(PLUGIN)} test_suite.py {cell} {short} --perf-launches=2",
        "PAIR": f"{cell} --max-pairs 2",
    }.items():
        command = command.replace(name, options)
    program, *words = shlex.split(command.format_map(plants))
    module = ["pytest", *PLUGIN] if program == "pytest" else ["ipexperf.cli"]
    return [sys.executable, "-m", *module, *words]


def test_no_secret_is_written_or_printed(plants: Plants, suite: Suite, leases: Path) -> None:
    given, texts = {*suite.path.rglob("*")}, {}
    for command, code in COMMANDS.items():
        words = words_of(command, suite, plants)
        ran = subprocess.run(words, cwd=suite.path, capture_output=True, text=True, check=False)
        assert ran.returncode == code, f"{command}: {ran.stdout}{ran.stderr}"
        texts[command] = f"{ran.stdout}{ran.stderr}".encode()
    written = [path for path in (*suite.path.rglob("*"), *leases.rglob("*")) if path.is_file() and path not in given]
    texts |= {str(path): read(path) for path in written}
    shown = [
        (place, name)
        for place, secret in plants.items()
        for name in texts
        if secret.encode() in texts[name] or (name not in COMMANDS and secret in name)
    ]
    assert len(plants) >= 40
    assert shown == []
    assert [path.read_text() for path in leases.iterdir()] == [""], "a note ends with its lease"
    (command,), *_ = suite.query("SELECT json_extract(meta, '$.command') FROM run ORDER BY id")
    assert {"test_suite.py", "--api-token=***", "--junitxml=junit.xml", "--model=tiny,leaky,talkative"} <= {
        *json.loads(command)
    }
