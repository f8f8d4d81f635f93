"""A history on a server that is reached over TCP, encrypted: recorded there, or refused if the certificate is wrong."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import postgres
import pytest
from history_records import ENVIRONMENT, OK, make_case, make_measurement
from sqlalchemy import text

from ipexperf import cli
from ipexperf.errors import HistoryError
from ipexperf.history import History
from ipexperf.history.spool import Spool
from ipexperf.judge.policy import Policy
from ipexperf.plan.options import Options
from ipexperf.recorder import Recorder

pytestmark = pytest.mark.server

JUDGED = replace(OK, policy=Policy().label)
SETTINGS = (f"listen_addresses={postgres.HERE}", *postgres.FORGETFUL, postgres.CONNECTIONS)


@pytest.fixture(scope="module")
def encrypting(server: postgres.Server) -> Iterator[postgres.Server]:
    """Started only where `server` could be."""
    del server
    programs = postgres.binaries()
    if shutil.which("openssl") is None or programs is None:
        pytest.skip("openssl is not installed here")
    with postgres.running(programs, SETTINGS, encrypts=True) as running:
        yield running


@pytest.fixture(scope="module")
def another(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another certificate than that of the server."""
    return postgres.make_certificate(tmp_path_factory.mktemp("another"), f"IP:{postgres.HERE}")


def verified(server: postgres.Server, root: Path, **query: str) -> str:
    return server.tcp(server.database(), sslmode="verify-full", sslrootcert=str(root), **query)


def record(target: str, folder: Path) -> tuple[Recorder, list[str]]:
    """A run of one case."""
    said: list[str] = []
    run = Recorder(Options(db=target, cache=folder), Path("suite"), ("pytest",), said.append)
    run.open()
    run.case(make_measurement(make_case("one"), environment=ENVIRONMENT), JUDGED, Policy())
    run.finish("finished")
    run.close()
    return run, said


def encryption(target: str) -> bool:
    """What the server says of a connection to this address."""
    with History.open(target) as history, history._engine.connect() as connection:
        query = text("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()")
        return bool(connection.execute(query).scalar_one())


def test_a_run_is_recorded_over_tls(
    encrypting: postgres.Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = verified(encrypting, encrypting.certificate)
    run, said = record(target, tmp_path)
    assert said == []
    assert encryption(target)
    assert cli.main(["show", "last", "--db", target]) == 0
    assert "one-cpu-bf16-infer-ipex" in capsys.readouterr().out
    with History.open(target) as history:
        assert [one.uid for one in history.runs()] == [run.uid]


def test_a_run_is_recorded_over_plain_tcp(encrypting: postgres.Server, tmp_path: Path) -> None:
    """If the address says so. By default the driver encrypts where the server can."""
    target = encrypting.tcp(encrypting.database(), sslmode="disable")
    run, said = record(target, tmp_path)
    assert said == []
    assert not encryption(target)
    with History.open(target) as history:
        assert [one.uid for one in history.runs()] == [run.uid]


def refusal(target: str, folder: Path) -> str:
    """The error of a run that never reached this server."""
    with pytest.raises(HistoryError) as raised:
        record(target, folder)
    message = str(raised.value)
    assert "\n" not in message
    assert postgres.PASSWORD not in message
    assert quote(postgres.PASSWORD) not in message
    assert message.endswith(".")
    assert list(folder.rglob("*.db")) == []
    return message


def test_an_unknown_certificate_is_one_sentence(encrypting: postgres.Server, another: Path, tmp_path: Path) -> None:
    assert "certificate verify failed" in refusal(verified(encrypting, another), tmp_path)


def test_a_certificate_of_another_host_is_one_sentence(encrypting: postgres.Server, tmp_path: Path) -> None:
    """The certificate is for an address, and the history is said to be on `perf.example`, which is there."""
    target = verified(encrypting, encrypting.certificate, hostaddr=postgres.HERE)
    message = refusal(target.replace(f"@{postgres.HERE}:", "@perf.example:"), tmp_path)
    assert 'does not match host name "perf.example"' in message


def test_a_missing_root_certificate_is_one_sentence(encrypting: postgres.Server, tmp_path: Path) -> None:
    assert "does not exist" in refusal(verified(encrypting, tmp_path / "no.crt"), tmp_path)


def test_a_command_refuses_a_wrong_certificate_too(
    encrypting: postgres.Server, another: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["trend", "--db", verified(encrypting, another)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert "certificate verify failed" in captured.err


def test_a_run_is_stored_on_this_host_if_the_certificate_was_changed(
    encrypting: postgres.Server, another: Path, tmp_path: Path
) -> None:
    """The server was reached before, so the run is not refused. It waits until the certificate is right again."""
    root = tmp_path / "root.crt"
    root.write_bytes(encrypting.certificate.read_bytes())
    target = verified(encrypting, root)
    first, _ = record(target, tmp_path)
    root.write_bytes(another.read_bytes())
    second, said = record(target, tmp_path)
    assert "certificate verify failed" in said[0]
    assert "it is kept in" in said[0]
    root.write_bytes(encrypting.certificate.read_bytes())
    spool = Spool.of(target, tmp_path)
    assert spool is not None
    with History.open(target) as history:
        assert spool.deliver(history).files == 1
        assert sorted(one.uid for one in history.runs()) == sorted([first.uid or "", second.uid or ""])
