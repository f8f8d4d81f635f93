"""`ipexperf changes` on series that drift, go to and fro, recovered or fell to nothing."""

import csv
import io
import json

import change_records as records
import pytest
from cli_answers import run

MODELS = ("older", "slower", "drifts", "switches", "wrong", "mended", "faster", "steady")


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    return str(records.fill(tmp_path_factory.mktemp("changes") / "ipexperf.db", *MODELS))


@pytest.fixture
def ask(capsys, database, monkeypatch):
    """What `ipexperf changes` answers on a terminal that cuts nothing off."""
    monkeypatch.setenv("COLUMNS", "300")

    def answer(*arguments):
        return run(capsys, "changes", "--db", database, *arguments)

    return answer


def cells(out, model):
    """The cells of the only row of a case."""
    (line,) = [line for line in out.splitlines() if line.startswith(f"{model}-cpu") and " ms " in line]
    return line.split()


def test_what_is_slower_now_is_on_top_and_what_recovered_is_below(ask):
    """Regressions that last, the latest first; then what is over; improvements last."""
    document = json.loads(ask("--json"))
    assert [(row["model"], row["direction"]) for row in document["changes"]] == [
        ("slower", "regressed"),
        ("older", "regressed"),
        ("mended", "regressed"),
        ("faster", "improved"),
    ]
    rows = [line.split()[1] for line in ask().splitlines() if " ms " in line]
    assert rows == ["regressed", "regressed", "recovered", "improved"]


@pytest.mark.parametrize("model", ["drifts", "switches"])
def test_an_unsteady_series_blames_no_run_and_is_counted(ask, model):
    """A drift, and two modes between which a series goes to and fro."""
    assert "0 changes in 1 series; 1 without a run to blame: drifting, or going to and fro" in ask("--model", model)
    document = json.loads(ask("--model", model, "--json"))
    assert (document["changes"], document["series"], document["unsteady"]) == ([], 1, 1)


def test_a_regression_that_was_mended_is_one_row_with_both_ends(ask):
    """In the table, as JSON and as CSV; and it is news again on the night that its recovery can be told."""
    out = ask("--model", "mended")
    assert cells(out, "mended")[1] == "recovered"
    assert f"back at its level since {records.day(records.ENDED)}" in out
    assert "1 change in 1 series" in out
    (change,) = json.loads(ask("--model", "mended", "--json"))["changes"]
    assert (change["runs_before"], change["runs_after"]) == (records.BEGAN, records.ENDED - records.BEGAN)
    assert change["first_started_at"][:10] == records.day(records.BEGAN)
    assert change["recovered_started_at"][:10] == records.day(records.ENDED)
    (line,) = csv.DictReader(io.StringIO(ask("--model", "mended", "--csv")))
    assert line["recovered_run"] == change["recovered_run"]
    assert "1 change in 1 series" in ask("--model", "mended", "--since", records.day(records.ENDED + 3))
    assert "0 changes in 1 series" in ask("--model", "mended", "--since", records.day(records.ENDED + 4))
    # Before it ended it was a regression like any other.
    assert cells(ask("--model", "mended", "--until", records.day(records.ENDED - 1)), "mended")[1] == "regressed"


def test_an_accuracy_that_fell_to_nothing_is_told(ask):
    """0 has no logarithm: the ratio is 0, and the change has its runs and commits as any other."""
    out = ask("--metric", "accuracy")
    (row,) = [line for line in out.splitlines() if " accuracy " in line]
    assert row.split()[3:9] == ["accuracy", "90.0", "%", "0.0", "%", "0.000"]
    assert f"commits  {records.WRONG - 1:08d}..{records.WRONG:08d}" in out
    (change,) = json.loads(ask("--metric", "accuracy", "--json"))["changes"]
    assert (change["before"], change["after"], change["ratio"]) == (0.9, 0.0, 0.0)
