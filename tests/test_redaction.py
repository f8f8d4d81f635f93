"""What may be recorded and printed: values that tune, and texts and command lines without secrets."""

import re
from pathlib import Path

import pytest

from ipexperf import redaction
from ipexperf.redaction import recorded, redacted, redacted_arm, redacted_command, tuned


@pytest.mark.parametrize(
    "text",
    ["", "baseline", "OMP_NUM_THREADS=1", "TORCHINDUCTOR_FREEZING=1 dtype=bf16", "python=/opt/a/bin/python level=O0",
     "FLAG=on", "R=1.05", "ONEAPI_DEVICE_SELECTOR=level_zero:0", "PYTHONPATH=/opt/a:/opt/b", "X=hidden-1a2b3c4d"],
)  # fmt: skip
def test_an_arm_without_secrets_is_recorded_as_it_was_written(text: str) -> None:
    assert redacted_arm(text) == text


@pytest.mark.parametrize(
    "text",
    ["MY_API_TOKEN={}", "'MY_API_TOKEN={}'", 'MY_API_TOKEN="{}"', "OMP_NUM_THREADS=1 PLAIN={} dtype=bf16",
     "TORCH_HUB_TOKEN={}", "OMP_SECRET={}", "URL={}", "éMY={}", "ZENODO={}", "API_KEY=12", "X=hidden-{}",
     "PYTORCH_ANY=https://u:{}@h", "CCL_ANY=q1w2e3r4t5y6u7i8o9p0{}", "LC_ANY=http://{}"],
)  # fmt: skip
def test_of_a_value_that_may_be_a_secret_only_a_digest_is_recorded(text: str) -> None:
    """A digest, because two values are still two arms."""
    one, same, other = (redacted_arm(text.format(value)) for value in ("hunter22", "hunter22", "s3cret55"))
    assert one == same
    assert "hunter22" not in one
    assert "=hidden-" in one
    assert (one != other) == ("{}" in text)
    assert redacted_arm(one) == one


@pytest.mark.parametrize(
    "word",
    ["--perf-against=MY_TOKEN={}", "MY_TOKEN={}", "-oipexperf=--perf-against=MY_TOKEN={}", "MY_TOKEN='{}",
     "--a=MY_TOKEN='x {}'", "--perf-against=baseline MY_TOKEN={}",
     "ipexperf=--perf-model=x --perf-against=MY_TOKEN={}", "ipexperf=--perf-against='baseline MY_TOKEN={}'"],
)  # fmt: skip
def test_a_command_line_is_recorded_without_the_secrets_of_its_arms(word: str) -> None:
    [shown] = redacted_command([word.format("hunter22")])
    assert "hunter22" not in shown
    assert re.search(r"MY_TOKEN=(hidden|\*)", shown)


def test_other_words_of_a_command_line_are_recorded_as_they_are() -> None:
    words = [
        "suites/",
        "--perf-knobs",
        "level=O0",
        "-k",
        "not it's",
        "--perf-db=a b.db",
        "-o",
        "addopts=-q",
        "--no-auth",
        __file__,
    ]
    assert redacted_command(words) == words


@pytest.mark.parametrize(
    ("name", "tunes"),
    [("PYTHONMALLOC", True), ("PYTHONOPTIMIZE", True), ("PYTHONPROFILEIMPORTTIME", True), ("PYTHON_GIL", True),
     ("TBB_NUM_THREADS", True), ("OPENBLAS_NUM_THREADS", True), ("LD_AUDIT", True),
     ("CUDA_LAUNCH_BLOCKING", True), ("NCCL_ALGO", True), ("NCCL_VERSION", False), ("CUDA_HOME", False),
     ("PYTORCH_MIRROR", False), ("CCL_KVS_IP_PORT", False),
     ("TORCHINDUCTOR_CACHE_DIR", False), ("TORCH_CUDA_ARCH_LIST", False), ("PYTHONPATH", False),
     ("PYTHONUNBUFFERED", False), ("LD_LIBRARY_PATH", False)],
)  # fmt: skip
def test_variables_that_change_how_python_computes_are_recorded(name: str, tunes: bool) -> None:  # noqa: FBT001
    """Those that say where things lie are not: each machine has its own."""
    assert (name in tuned({name: "1"})) == tunes


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        ("postgresql://me:secret@host/perf", "postgresql://***@host/perf"),
        ("--db=postgresql+psycopg://me:s@cret/@host:5432/perf", "--db=postgresql+psycopg://***@host:5432/perf"),
        ("postgresql://me@host/perf?password=secret&ssl=on", "postgresql://me@host/perf?password=***&ssl=on"),
        ("https://secret@host:8080/simple, and more", "https://***@host:8080/simple, and more"),
        ("curl 'https://host/?api_key=secret' now", "curl 'https://host/?api_key=***' now"),
        ("git+https://host:80/a/b@v1.2 ssh://git@host results/me@home.db", ""),
        (
            "log in with --api-token secret or db_passwd='se cret' now",
            "log in with --api-token *** or db_passwd=*** now",
        ),
        ('{"clientSecret": "se cret", "key": "name"}', '{"clientSecret": ***, "key": "name"}'),
        ("Authorization: Bearer secret", "Authorization: ***"),
        ("machine host login me password secret", "machine host login me password ***"),
        ("tokens=64, passed=12345; tokenizer=bert, author=anna, sorted(x, key=len), OMP_WAIT_POLICY=PASSIVE", ""),
        ("password authentication failed for user me: KeyError: 'x'; '/etc/passwd': no program", ""),
    ],
)
def test_a_text_is_shown_without_users_of_urls_and_without_values_whose_names_say_that_they_are_secret(
    told: str, shown: str
) -> None:
    """An empty text stands for one that is shown as it is."""
    assert redacted(told) == (shown or told)


def test_secrets_of_variables_and_options_are_hidden_in_any_text_from_then_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A short one as a word, since it may be a common one; the path of a file that has a secret is none."""
    monkeypatch.setattr(redaction, "_seen", set())  # other tests have secrets of their own
    (tmp_path / "secret").write_text("")
    for name, value in {
        "MY_TOKEN": "abc-def-0123456",
        "PGPASSWORD": "postgres",
        "KEY_FILE": str(tmp_path / "secret"),
    }.items():
        monkeypatch.setenv(name, value)
    redacted_command(["--my-password", "of-an-option", "-oaddopts=--auth of-nested"])
    recorded("ARM_SECRET", "of-an-arm")
    told = f"xabc-def-0123456y postgresql:// postgres {tmp_path}/secret of-an-option of-nested of-an-arm"
    assert redacted(told) == f"x***y postgresql:// *** {tmp_path}/secret *** *** ***"
