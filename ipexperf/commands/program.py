"""`ipexperf ab --program`: compare a program as a whole, and the numbers that it tells, in both arms in turns."""

from __future__ import annotations

import contextlib
import dataclasses
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from ipexperf import units
from ipexperf.commands import console, planning
from ipexperf.commands.progress import Progress
from ipexperf.errors import UsageError, WorkerError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from ipexperf.compare.against import JudgedCases, PairRun
    from ipexperf.compare.programs import Program
    from ipexperf.conduct.conductor import Conductor
    from ipexperf.environments.sources import Say
    from ipexperf.history.store import Status
    from ipexperf.plan.arms import ArmSpec
    from ipexperf.plan.options import Options

NAMES = ("arm a", "arm b")
Arms = tuple["ArmSpec", "ArmSpec"]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of programs."""
    parser.add_argument("--program", action="store_true", help="what is behind -- is a program, run as a whole")
    text = "numbers that it tells, such as hyperfine (repeatable)"
    parser.add_argument("--metrics", action="append", default=[], metavar="FORMAT", help=text)
    text = "its server, of which each arm has one, on {port}"
    parser.add_argument("--server", default="", metavar="COMMAND", help=text)
    text = "a URL that answers once that is ready, or a command"
    parser.add_argument("--ready", default="", metavar="WHAT", help=text)


def parse(arguments: argparse.Namespace, options: Options) -> Program | None:
    """The program that is behind --, if it is one."""
    from ipexperf.compare.programs import Program

    if arguments.program:
        return Program.of(arguments.tests, options, arguments.metrics, arguments.server, arguments.ready)
    for flag, given in (("--metrics", arguments.metrics), ("--server", arguments.server), ("--ready", arguments.ready)):
        if given:
            raise UsageError(f"{flag}: only a program has that: say --program too")
    return None


def compare(what: Program, options: Options, words: Callable[[Callable[[str], None]], Arms], *, as_json: bool) -> bool:
    """Compare, record and print. Returns whether a number is worse in arm b. `words` makes both arms ready."""
    from ipexperf.conduct.conductor import Conductor

    progress = Progress()
    recorder = planning.recorder("ab", options)
    conductor = Conductor(options, Path.cwd(), progress.say)
    status: Status = "failed"
    wrong: list[str] = []
    slower: list[bool] = []
    servers = contextlib.ExitStack()

    def tell(running: PairRun, judged: JudgedCases) -> None:
        for measurement, verdict, policy in judged.values():
            if measurement.launches:
                recorder.case(measurement, verdict, policy)
            wrong.extend([measurement.launches[-1].reason] if measurement.failure else [])
            slower.append(verdict.fails)
        recorder.add_rounds(running.rounds)
        _print(running, judged, unable, as_json=as_json)

    try:
        running, unable = _comparison(what, words(progress.say), options, conductor, progress.say, servers)
        planning.play(running, recorder, progress, tell)
        status = "finished"
    except KeyboardInterrupt:
        status = "interrupted"
        raise
    finally:
        servers.close()
        recorder.finish(status)
        recorder.close()
        conductor.close()
    for reason in wrong:
        raise WorkerError("error", reason)
    return any(slower)


def _comparison(
    what: Program, words: Arms, options: Options, conductor: Conductor, say: Say, servers: contextlib.ExitStack
) -> tuple[PairRun, list[str]]:
    """Get both arms ready, learn the program's numbers, and plan the comparison of each that both tell."""
    from ipexperf import invocation
    from ipexperf.compare import against, programs

    plan = dataclasses.replace(against.between(*words, {}, options), names=NAMES)
    program = programs.MeasuredProgram(what, invocation.device_of(options), plan, options, conductor, say)
    runs = servers.enter_context(contextlib.closing(program.runs))
    unable = program.learn()
    return against.PairRun(program.against or plan, [*program.wishes.items()], conductor, say, walk=runs), unable


def _print(running: PairRun, judged: JudgedCases, unable: Sequence[str], *, as_json: bool) -> None:
    """What was found: of each number; then what ran, what differs between the arms, and why it ended."""
    from ipexperf.compare import sequence
    from ipexperf.report import functions, lines
    from ipexperf.report.summary import Judged

    comparisons = running.comparisons()
    if as_json:
        told = [(comparisons[case], verdict) for case, (_, verdict, _) in judged.items() if case in comparisons]
        console.say_json([sequence.document(*both) for both in told])
        return
    shown = functions.lines([Judged(measurement, verdict) for measurement, verdict, _ in judged.values()])
    shown += lines.listed("NOT COMPARED", "there is no ratio", unable)
    differences = next((comparison.differences for comparison in comparisons.values()), [])
    texts = [f"differs  {line}" for line in differences] or [f"{sequence.SAME}: any difference is noise"]
    shown += [line for text in texts for line in lines.wrapped(text)]
    unsure = Counter(c.stop.text for c in comparisons.values() if c.stop.why is not sequence.Why.DECIDED)
    for text, count in unsure.items():
        shown += lines.wrapped(f"stopped  {units.plural(count, 'number')}: {text}")
    console.say("\n".join(shown))
