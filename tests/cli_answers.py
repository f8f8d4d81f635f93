"""The `ipexperf` command as a person calls it: what it answers, and the one sentence with which it refuses."""

from ipexperf.cli import main


def run(capsys, *arguments):
    assert main(arguments) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


def refused(capsys, *arguments):
    try:
        status = main(arguments)
    except SystemExit as error:
        status = error.code
    captured = capsys.readouterr()
    assert status == 2
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert captured.err.startswith("ipexperf")
    return captured.err
