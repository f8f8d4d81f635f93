"""`ipexperf ab --program --server`: the program is a client, which runs against a server of each arm in turns."""

import re
import shlex
import sys
from pathlib import Path

import pytest
from test_cli_program import asked, over, pids

from ipexperf import cli

pytestmark = pytest.mark.process

SERVES = """\
import fcntl, os, socket, sys, time
open('pids', 'a').write(f'{os.getpid()} ')
print('loading', flush=True)
slow, asked = os.environ.get('SLOW', '1'), 0
exec(os.environ.get('AT_START', ''))
with socket.create_server(('127.0.0.1', int(sys.argv[1]))) as server:
    while True:
        client, _ = server.accept()
        with client:
            if client.recv(100):
                asked += 1
                exec(os.environ.get('AT_REQUEST', ''))
                state = '503' if asked <= int(os.environ.get('BUSY', '0')) else '404'
                client.sendall(f'HTTP/1.0 {state} x\\r\\n\\r\\n{slow}'.encode())
"""
CLIENT = """\
import os, random, socket, sys
exec(os.environ.get('IN_CLIENT', ''))
with socket.create_connection(('127.0.0.1', int(sys.argv[1]))) as server:
    server.sendall(b'GET / HTTP/1.0\\r\\n\\r\\n')
    head, _, slow = server.recv(100).decode().partition('\\r\\n\\r\\n')
assert '404' in head, head
print('latency:', float(slow) * random.Random(os.getpid()).gauss(1, 0.002))
"""
SERVER = f"{sys.executable} serves.py {{port}}"
CLIENT_WORDS = (sys.executable, "client.py", "{port}")
METRICS = ("--metrics", r"lower:re:(?P<name>\w+): ([\d.]+)")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run the test in a folder of its own with a server and its client."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "serves.py").write_text(SERVES)
    (tmp_path / "client.py").write_text(CLIENT)
    return tmp_path


def ab(*words: str) -> int:
    return cli.main(["ab", "--program", "--server", SERVER, *words, *METRICS, "--", *CLIENT_WORDS])


def test_the_server_that_is_slower_is_found_and_recorded(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Both begin anew after four pairs, and end with the comparison."""
    assert ab("--b", "SLOW=1.2", "--fail", "--max-pairs", "6") == 1
    shown = capsys.readouterr().out
    assert re.search(r"latency\n +[\d.]+ % worse", shown)
    assert f"server  {SERVER}" in shown
    assert asked("SELECT DISTINCT json_extract(params, '$.knobs.server') FROM 'case'") == [(SERVER,)]
    assert len(pids(folder / "pids")) == 4
    assert all(map(over, pids(folder / "pids")))


@pytest.mark.parametrize(
    ("ready", "variable"),
    [
        ((), "AT_START=time.sleep(0.5)"),
        (("--ready", "http://127.0.0.1:{port}/health"), "BUSY=2"),
        (("--ready", f"{sys.executable} client.py {{port}}"), "BUSY=2"),
    ],
)
def test_no_client_runs_before_its_server_is_ready(
    ready: tuple[str, ...], variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(*variable.split("=", 1))
    assert ab("--max-pairs", "1", *ready) == 0


@pytest.mark.parametrize(
    ("variable", "sentence"),
    [
        ("AT_START=sys.exit('no weights')", "the server ended with 1: loading | no weights"),
        ("AT_START=time.sleep(60)", r"the server was not ready within 2\.00 s \(.*\): .*; it printed last: loading"),
        ("AT_REQUEST=if asked == 3: os.kill(os.getpid(), 11)", r"the server was ended by SIGSEGV: loading"),
        ("IN_CLIENT=sys.exit('no answer')", "it ended with 1: no answer"),
        ("IN_CLIENT=import time; open('hung', 'a').write('x'); time.sleep(60)", "it took longer than 2.00 s"),
    ],
)
def test_what_is_wrong_with_an_arm_is_one_sentence(
    folder: Path, variable: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ab("--b", shlex.quote(variable), "--max-pairs", "4", "--perf-timeout", "2") == cli.USAGE_ERROR
    assert re.match(f"ipexperf: arm b: {sentence}", capsys.readouterr().err.splitlines()[-1])
    assert [path.read_text() for path in folder.glob("hung")] in ([], ["x"])  # once is enough
    assert all(map(over, pids(folder / "pids")))


def test_servers_of_which_only_one_can_live_run_one_after_the_other(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AT_START", "card = open('card', 'w'); fcntl.flock(card, fcntl.LOCK_EX | fcntl.LOCK_NB)")
    assert ab("--max-pairs", "2") == 0
    assert re.search(r"arm b: the server ended with 1: .*; alone it is ready: the servers", capsys.readouterr().err)
    assert asked("SELECT DISTINCT n FROM measurement") == [(2,)]
    assert len(pids(folder / "pids")) >= 5
    assert all(map(over, pids(folder / "pids")))
