"""What is published has no names of hosts, people and folders."""

from __future__ import annotations

from ipexperf.tools.evidence import scrub

NAMES = {"/home/ann/work": "FOLDER", "/home/ann": "HOME", "ann": "USER", "box7": "HOST"}


def test_names_are_replaced_the_longest_first() -> None:
    line = "/home/ann/work/x.py on box7 by ann: annotated /home/anna"
    assert scrub.text(line, NAMES) == "FOLDER/x.py on HOST by USER: annotated /home/anna"


def test_hardware_has_no_host_and_no_pin() -> None:
    document = {"cpu": "a", "isa": [], "cores": 1, "host": "box7", "affinity": [1], "kernel": "6",
                "accelerator": {"name": "cuda", "properties": "Card", "pinned": "CUDA_VISIBLE_DEVICES=3"}}  # fmt: skip
    published = scrub.hardware(document)
    assert {"host", "affinity", "kernel"}.isdisjoint(published)
    assert published["accelerator"] == {"name": "cuda", "properties": "Card"}


def test_variables_have_no_path_but_the_names_of_preloaded_libraries() -> None:
    values = {"LD_PRELOAD": "/home/ann/lib/a.so:b.so", "OMP_NUM_THREADS": "4", "TORCH_HOME": "/home/ann/torch"}
    assert scrub.variables(values) == {"LD_PRELOAD": "a.so:b.so", "OMP_NUM_THREADS": "4"}


def test_software_has_no_interpreters_path_and_no_number_of_threads() -> None:
    """Threads are of a case, such as an instance of the mode realtime, and not of the software."""
    document = {
        "python": "3.11.7",
        "threads": 1,
        "executable": "/home/ann/python",
        "torch": "2.8.0",
        "packages": {"timm": "1.0"},
    }
    assert scrub.software(document) == {"python": "3.11.7", "torch": "2.8.0", "timm": "1.0"}
