"""What uv is told of pip's settings, and what people are told of uv."""

import json
import re
import sys
from pathlib import Path

import pytest

from ipexperf.environments import installer
from ipexperf.errors import LockError

pytestmark = pytest.mark.process


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of the program that runs in uv's place."""
    program = tmp_path / "uv"
    program.touch(0o755)
    monkeypatch.setattr(installer.uv, "find_uv_bin", lambda: str(program))
    return program


def test_pips_files_and_variables_are_passed_on(fake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A password is on no command line. What the user tells uv itself is left alone. The mirror may have it all."""
    told = (
        "json.dump([sys.argv[1:], dict(os.environ)], sys.stdout)\nsys.exit(os.environ['UV_INDEX'] in os.environ['BAD'])"
    )
    fake.write_text(f"#!{sys.executable}\nimport json, os, sys\n{told}\n")
    monkeypatch.setenv("BAD", "")
    (tmp_path / "wheels").mkdir()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pip.conf").write_text(
        "[global]\nindex-url = https://me:secret@mirror/simple\nextra-index-url =\n  https://a/1\n  https://b/2\n"
        "find-links = wheels\ncert = /far.pem\ntimeout = 7\n[install]\ncert = /near.pem\n"
    )
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("UV_HTTP_TIMEOUT", "99")
    for name in ("PIP_CERT", "PIP_FIND_LINKS", "PIP_DEFAULT_TIMEOUT", "SSL_CERT_FILE", "UV_INDEX", "UV_DEFAULT_INDEX"):
        monkeypatch.delenv(name, raising=False)
    words, variables = json.loads(installer.run("pip", "compile", indexes=["https://c/3"]))
    assert words == ["pip", "compile", "--no-index"]
    assert variables["UV_INDEX"] == "https://a/1 https://b/2"
    monkeypatch.setenv("BAD", variables["UV_INDEX"])
    words, variables = json.loads(installer.run("pip", "compile", indexes=["https://c/3"]))
    assert variables["UV_DEFAULT_INDEX"] == "https://me:secret@mirror/simple"
    assert variables["UV_INDEX"] == "https://a/1 https://b/2 https://c/3"
    assert variables["UV_FIND_LINKS"] == str(tmp_path / "wheels")
    assert (variables["SSL_CERT_FILE"], variables["UV_HTTP_TIMEOUT"]) == ("/near.pem", "99")


def test_one_that_takes_long_says_so(fake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And what it wrote of errors is known when it ends, without the password."""
    monkeypatch.setattr(installer, "SPEAK_SECONDS", 0.05)
    fake.write_text("#!/bin/sh\ncat\nsleep 0.3\necho error: https://me:secret@far/ >&2; exit 3\n")
    said: list[str] = []
    with pytest.raises(LockError, match=r"^https://\*\*\*@far/$"):
        installer.run("pip", "install", say=said.append, send="pace==1.0\n")
    assert said
    assert all(re.match(r"still installing, for \d+ s$", line) for line in said)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "error: No solution\n  cause: Because there is no a==9 and you require a==9, we can conclude that no\n",
            "there is no a==9",
        ),
        (
            "error: Request failed\n  cause: Failed to fetch: http://far/a/\n  cause: Connection refused\n",
            "Failed to fetch: http://far/a/: Connection refused",
        ),
        ("Traceback:\n  File x\nRuntimeError: no compiler\n\nhint: Build failures\n", "RuntimeError: no compiler"),
        ("ERROR: one\nfurther\n", "one"),
        ("", "no message"),
    ],
)
def test_a_reason_is_one_sentence(text: str, told: str) -> None:
    assert installer.reason(text) == told
