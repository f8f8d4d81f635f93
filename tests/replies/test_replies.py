"""What real workers answered once, answered again: the controller asks the same, and records the same."""

import json
import lzma
import re
from pathlib import Path

import pytest
from reply_scenes import SCENES, records, run, tape_of

pytestmark = pytest.mark.process


@pytest.mark.parametrize("name", SCENES)
def test_the_same_replies_make_the_same_records(name: str, tmp_path: Path) -> None:
    kept = json.loads(lzma.decompress(tape_of(name).read_bytes()))

    done = run(name, tmp_path)

    assert done.returncode == kept["code"], done.stdout + done.stderr
    found = records(tmp_path)
    for what, rows in kept["records"].items():
        assert found[what] == rows, what
    assert len(list((tmp_path / "tape" / "here").iterdir())) == len(kept["processes"])


@pytest.mark.parametrize("name", SCENES)
def test_a_tape_has_no_folder_of_the_machine_that_recorded_it(name: str) -> None:
    text = lzma.decompress(tape_of(name).read_bytes()).decode()

    tops = set(re.findall(r"(?:(?<![\w.}/)+])|(?<=-[IL])|(?<=://))/[\w.@+-]+", text))

    assert tops <= {"/usr", "/opt"}  # of the system, and of the machine that built torch
