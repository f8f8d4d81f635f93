"""The page of the architecture names what is in the code, and nothing that is gone."""

import re
from pathlib import Path

import pytest
import tomllib
from page_text import sections

from ipexperf.bench.process.worker import Worker

ROOT = Path(__file__).parents[2]
SECTIONS = sections((ROOT / "docs" / "architecture.md").read_text())
LISTED = ("", "bench/", "compare/")
"""The rooms of which every file is named."""
CODE = {
    path.relative_to(ROOT / "ipexperf").as_posix(): path.read_text()
    for path in sorted((ROOT / "ipexperf").rglob("*.py"))
}


def rooms() -> set[str]:
    """The paths in the tree of rooms, from the root of the checkout. A deeper entry is in the folder above it."""
    (tree,) = re.findall(r"^```\n(.*?)^```$", SECTIONS["The rooms"], re.MULTILINE | re.DOTALL)
    found, folders = set(), {0: ""}
    for line in tree.splitlines():
        depth = len(line) - len(line.lstrip())
        if depth > 4:  # the explanation of the line before
            continue
        for name in re.findall(r"(?:(?<=^)|(?<= ))\w+(?:\.py|/)(?= |$)", re.split(r"\s{3,}", line.strip())[0]):
            found.add(folders[depth] + name)
            folders[depth + 2] = folders[depth] + name
    return found


def test_every_path_of_the_rooms_exists() -> None:
    paths = rooms()
    assert {"ipexperf/plugin.py", "ipexperf/bench/boot.py", "ipexperf/compare/group.py", "suites/"} <= paths
    assert [path for path in sorted(paths) if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("room", LISTED, ids=lambda room: room or "ipexperf/")
def test_every_file_of_a_listed_room_is_named(room: str) -> None:
    """Likewise every folder."""
    folder = ROOT / "ipexperf" / room
    present = {path.name for path in folder.glob("*.py")} | {f"{path.parent.name}/" for path in folder.glob("*/*.py")}
    named = {path.removeprefix(f"ipexperf/{room}") for path in rooms() if path.startswith(f"ipexperf/{room}")}
    unsaid = {"__init__.py"} if room else set()
    assert sorted(present - named - unsaid) == []


def test_the_files_to_begin_with_exist() -> None:
    """Each row of the table of the larger rooms names files of its room."""
    room, missing = "", []
    for first, last in re.findall(r"^\| (.*?) \| .* \| (.*?) \|$", SECTIONS["The rooms"], re.MULTILINE):
        room = first or room
        folders = re.findall(r"`([\w/]+/)`", room)
        missing += [
            name for name in re.findall(r"`(\w+\.py)`", last) if not any(folder + name in CODE for folder in folders)
        ]
    assert room
    assert missing == []


def test_the_layers_are_those_of_the_contract() -> None:
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][0]
    rows = [{name.split(".")[1] for name in re.split(r" [:|] ", layer)} for layer in contract["layers"]]
    worker: set[str] = {"bench", "proof"}  # their own layers lie between one another
    layers = [
        row for row, before in zip(rows, [set(), *rows], strict=False) if not (row <= worker and before <= worker)
    ]
    layers = [row | worker if row & worker else row for row in layers]
    (chain,) = re.findall(r"`(tools -> .*?)`", SECTIONS["The rooms"], re.DOTALL)
    assert [sorted(layer.split(", ")) for layer in " ".join(chain.split()).split(" -> ")] == [
        sorted(layer) for layer in layers
    ]


def test_every_call_of_a_case_exists() -> None:
    """Each name in code font in the twelve calls is a file, or is defined in the file or class before its last dot."""
    names = [
        name
        for name in re.findall(r"`([\w./]+)`", SECTIONS["A case in twelve calls"])
        if re.search(r"[./]|^[A-Z]", name)
    ]
    assert len(names) > 20
    assert [name for name in names if not exists(name)] == []


def exists(name: str) -> bool:
    """Whether code has a file, module, function or class of this name; of `a.b`, whether `b` is in what defines `a`."""
    if name.endswith(".py"):
        return name in CODE
    owner, _, last = name.rpartition(".")
    if any(path.endswith(f"{name.replace('.', '/')}.py") for path in CODE):
        return True
    inside = owner.rpartition(".")[2]
    return any(
        re.search(rf"^ *(?:def|class) {last}\b", text, re.MULTILINE)
        for path, text in CODE.items()
        if not owner
        or path.endswith(f"{owner.replace('.', '/')}.py")
        or re.search(rf"^class {inside}\b", text, re.MULTILINE)
    )


def test_every_request_of_the_protocol_has_its_row() -> None:
    """And no other: each is a method of the worker, but for the fields that it keeps."""
    rows = re.findall(r"^\| `(\w+)` \|", SECTIONS["The protocol"], re.MULTILINE)
    methods = {name for name, value in vars(Worker).items() if callable(value) and not name.startswith("_")}
    assert sorted(rows) == sorted(methods - {"flaw"})
