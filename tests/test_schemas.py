"""docs/schemas say what documents are: made of the type hints of what is written, and held against what is written.

IPEXPERF_GOLDEN=1 writes the files anew. docs/reference/formats.md says when a form gets another number.
"""

import csv
import json
import os
from pathlib import Path
from typing import Any, get_args

import pytest
from cli_answers import run
from history_records import ENVIRONMENT, make_case, make_launch, make_measurement, make_round
from jsonschema import Draft202012Validator, ValidationError

from ipexperf import ratio
from ipexperf.case import FunctionCase, NetworkCase, ProgramCase
from ipexperf.cli import main
from ipexperf.commands.gate import Gated
from ipexperf.history import History
from ipexperf.history.records import LEFT_OUT, OF_OTHERS, RunDetail, RunRecord
from ipexperf.history.schema import metadata
from ipexperf.history.values import OPTIONAL_EVIDENCE
from ipexperf.judge import baseline
from ipexperf.judge.bisection import BisectionRecord, Change
from ipexperf.judge.policy import PairPolicy
from ipexperf.ratio import Ratio
from ipexperf.tools.codec import Schemas, schema
from ipexperf.tools.forge.comment import Contents
from ipexperf.verdict import BaselineEvidence, Level, MachineEvidence, PairsEvidence, SpeedVerdict, Structure, Verdict

GOLDEN = Path(__file__).parent / "golden"
SCHEMAS = Path(__file__).parents[1] / "docs" / "schemas"
CASES = NetworkCase | FunctionCase | ProgramCase
TEXT = {"type": "string"}
TURNED = make_case(knobs=(("weights", "int8"),))
PAIRS = PairsEvidence("git:main", "4 pairs", ("torch: 2.7 -> 2.8",), (0.1, 0.2), machine=MachineEvidence(1.0, "ok"))
SLOWER = Verdict(
    *("regressed", "it is slower", "step_time", Ratio(1.2, 1.1, 1.3), 0.001, 0.02),
    evidence=PAIRS,
    structure=Structure("changed", "other kernels", ("a -> b",), ("relu no longer fused",), fails=True),
    others=(Verdict("regressed", metric="held_memory", ratio=Ratio(1.5), level=Level(1.0, 1.5)),),
    speed=SpeedVerdict("ok", "as fast as before"),
)
STORED = Verdict("ok", ratio=Ratio(1.0, 0.9, 1.1), evidence=BaselineEvidence(0.01, 3, "a run", between_sessions=0.02))
SEARCH = BisectionRecord(
    *(TURNED, "good", "bad", "culprit", "it is enough", (Change("package", "torch", "2.7.0", None),)),
    *((), Ratio(1.09, 1.06, 1.12), Ratio(1.08), ("a -> b",)),
    machine_key=ENVIRONMENT["machine_key"],
    started_at="2026-01-01T00:00:00.000000+00:00",
    finished_at="2026-01-01T00:10:00.000000+00:00",
)


def case_alone(made: Schemas) -> dict[str, Any]:
    """A case in a document of its own: its knobs by name, and left out if there are none."""
    knobs = {"type": "object", "additionalProperties": TEXT}
    return {"anyOf": [schema({**made.fields(kind), "knobs": knobs}, kind, "knobs") for kind in get_args(CASES)]}


def show() -> dict[str, Any]:
    """Of `RunDetail.to_json`, in which what is not finite is null, and a ratio of a verdict is three numbers."""
    made = Schemas(["number", "null"], Case=CASES)
    numbers = dict.fromkeys(ratio.numbers(None), made.of(float))
    made.definitions["Ratio"] = schema(numbers, Ratio)
    made.definitions["Verdict"] = {}
    for kind in (BaselineEvidence, PairsEvidence):
        made.definitions[kind.__name__] = schema(made.fields(kind), kind, *OPTIONAL_EVIDENCE)
    fields = {**made.fields(Verdict), **numbers, "sentence": TEXT}
    fields["others"] = {"type": "array", "items": schema({name: fields[name] for name in OF_OTHERS}, Verdict)}
    fields["baseline"] = fields.pop("evidence")
    kept = {name: fields[name] for name in fields if name not in LEFT_OUT}
    made.definitions["Verdict"] = schema(kept, Verdict)
    search = {**made.fields(BisectionRecord), "case": case_alone(made)}
    made.definitions["BisectionRecord"] = schema(search, BisectionRecord)
    return {**made.of(RunDetail), "$defs": made.definitions}


def baselines() -> dict[str, Any]:
    """Of `baseline.dumps`: an environment is there once, under its digest."""
    made = Schemas(Case=CASES)
    entry = {"id": TEXT, **made.fields(baseline.CaseBaseline), "case": case_alone(made), "environment": TEXT}
    made.definitions = {"Session": made.definitions["Session"]}
    made.definitions["CaseBaseline"] = schema(entry, baseline.CaseBaseline, "fingerprint", "answers")
    whole = {"format": {"enum": [baseline.FORMAT]}, **made.fields(baseline.Baselines)}
    whole["environments"] = {"type": "object", "additionalProperties": {"type": "object"}}
    return {**schema(whole, baseline.Baselines), "$defs": made.definitions}


def plain(kind: Any) -> dict[str, Any]:
    made = Schemas()
    return {**made.of(kind), "$defs": made.definitions}


MADE = {"show-1": show(), "runs-1": plain(tuple[RunRecord, ...]), "gate-1": plain(Gated), "comment-1": plain(Contents)}
MADE["baselines-1"] = baselines()


@pytest.mark.parametrize("name", MADE)
def test_a_schema_is_that_of_the_records(name: str) -> None:
    """And no file is left of one that is gone."""
    head = {"$schema": Draft202012Validator.META_SCHEMA["$id"], "$id": f"urn:ipexperf:{name}"}
    text = json.dumps({**head, **MADE[name]}, indent=1) + "\n"
    Draft202012Validator.check_schema(MADE[name])
    if os.environ.get("IPEXPERF_GOLDEN"):
        (SCHEMAS / f"{name}.json").write_text(text)
    assert (SCHEMAS / f"{name}.json").read_text() == text
    assert {path.stem for path in SCHEMAS.iterdir()} == MADE.keys()


def closed(part: Any) -> Any:
    """A schema whose objects have nothing more than it says."""
    if isinstance(part, list):
        return [closed(inner) for inner in part]
    if not isinstance(part, dict):
        return part
    return {name: closed(inner) for name, inner in part.items()} | (
        {"additionalProperties": False} if "required" in part else {}
    )


def hold(name: str, document: Any) -> None:
    Draft202012Validator(closed(json.loads((SCHEMAS / f"{name}.json").read_text()))).validate(document)


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A history with a case of each kind, verdicts with and without everything, a round and a search."""
    monkeypatch.chdir(tmp_path)
    with History.open("ipexperf.db") as history:
        uid = history.start_run(ENVIRONMENT, {"suite": "all"})
        launches = (make_launch(0, 0.01, held_memory=1.5),)
        history.record(uid, make_measurement(TURNED, launches=launches), SLOWER, PairPolicy())
        for case in (FunctionCase("=t.py::test_it", "cpu"), ProgramCase("./bench", "cpu", "rate", "1/s", higher=True)):
            history.record(uid, make_measurement(case, launches=launches), STORED)
        history.record_round(uid, make_round())
        history.record_bisection(SEARCH, "all")
        history.finish_run(uid, "finished")


def test_what_is_printed_and_written_fits_its_schema(
    database: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of everything, and of what was recorded once; a document without a field, or with one more, does not."""
    shown = json.loads(run(capsys, "show", "last", "--json"))
    assert shown["bisections"]
    assert shown["rounds"]
    for document in (shown, json.loads((GOLDEN / "show.json").read_text())):
        hold("show-1", document)
    hold("runs-1", json.loads(run(capsys, "show", "--json")))
    hold("comment-1", json.loads(run(capsys, "comment", "--json")))
    hold("baselines-1", json.loads((GOLDEN / "baseline.json").read_text()))
    assert main(["gate", "--json"]) == 1
    gated = json.loads(capsys.readouterr().out)
    hold("gate-1", gated)
    assert (gated["exit_code"], len(gated["cases"])) == (1, 3)
    assert {case["name"]: case["lost"] for case in gated["cases"]}[TURNED.label]
    for wrong in ({**shown, "more": 1}, {name: shown[name] for name in shown if name != "rounds"}):
        with pytest.raises(ValidationError):
            hold("show-1", wrong)


def test_a_comment_of_another_form_is_refused(database: None, capsys: pytest.CaptureFixture[str]) -> None:
    later = {**json.loads(run(capsys, "comment", "--json")), "format": 2}
    Path("later.json").write_text(json.dumps(later))
    assert main(["comment", "--data", "later.json"]) == 2
    assert "2 is none of 1" in capsys.readouterr().err


def test_all_of_a_history_is_written_as_tables(database: None, capsys: pytest.CaptureFixture[str]) -> None:
    """Each with its columns and rows, samples as numbers, and no text that a spreadsheet runs."""
    for _ in range(2):  # over an older one too
        assert run(capsys, "report", "--tables", "out") == "out: all of the history, a CSV file a table\n"
    read = {path.stem: [*csv.DictReader(path.read_text().splitlines())] for path in Path("out").glob("*.csv")}
    assert read.keys() == metadata.tables.keys()
    assert all([*rows[0]] == [*metadata.tables[name].columns.keys()] for name, rows in read.items() if rows)
    assert {row["test"] for row in read["case"]} == {"", "'=t.py::test_it"}
    assert any(json.loads(row["data"])[2] == pytest.approx(0.01) for row in read["samples"])
    assert json.loads(read["run"][0]["meta"])["suite"] == "all"
