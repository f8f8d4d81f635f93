"""A value of a wrong kind in a history: one sentence that names the file, in whatever command meets it."""

import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import cli_answers
import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks" / "reliability"))
import good_files

DAMAGE = (
    ("run", "meta", "'[1]'", "show last"),
    ("run", "meta", "json_set(meta, '$.git', 7)", "show --json"),
    ("run", "started_at", "'2026-13-45T00:00:00.000000+00:00'", "trend"),
    ("run", "branch", "x'ff00'", "report --csv"),
    ("measurement", "hi", "9e999", "show last --json"),
    ("measurement", "median", "'fast'", "changes"),
    ("case", "params", "json_set(params, '$.size', json('[1]'))", "compare --ratios"),
    ("environment", "doc", "json_set(doc, '$.variables', 7)", "report --html pages"),
    ("launch", "doc", "json_set(doc, '$.metrics.step_time', json('[1]'))", "baseline accept last --reason why"),
    ("launch", "doc", "json_set(doc, '$.fingerprint.structure', 7)", "show last"),
    ("launch", "doc", "json_set(doc, '$.proof[0].found', json('[]'))", "report --markdown"),
    ("launch", "doc", "'null'", "compare last~1 last"),
    ("verdict", "judged_at", "7", "show last"),
    ("samples", "data", "'text'", "db check"),
    ("verdict", "reason", "json_set(reason, '$.hi', 'text')", "report --markdown"),
    ("verdict", "reason", "json_set(reason, '$.baseline', 'text')", "show last --csv"),
    ("bisection", "outcome", "'text'", "show last"),
    ("bisection", "culprits", "'[7]'", "report --pytest-benchmark"),
)


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return good_files.fill(tmp_path_factory.mktemp("good")).read_bytes()


@pytest.mark.parametrize(("table", "column", "value", "command"), DAMAGE)
def test_a_value_of_a_wrong_kind_is_one_sentence(
    good: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
    table: str, column: str, value: str, command: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ipexperf.db").write_bytes(good)
    with closing(sqlite3.connect("ipexperf.db")) as connection, connection:
        connection.execute(f'UPDATE "{table}" SET "{column}" = {value}')  # noqa: S608 - texts of ours
    for words in (command, "db check"):
        said = cli_answers.refused(capsys, *words.split())
        assert "ipexperf.db is damaged" in said
        assert f"{table}.{column} is " in said
