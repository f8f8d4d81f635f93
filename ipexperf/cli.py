"""The `ipexperf` command. It imports what takes long where Ctrl-C is one line; the subcommands are in `commands`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ipexperf import systems
from ipexperf.errors import USAGE_ERROR, UsageError

__all__ = ["INTERRUPTED", "USAGE_ERROR", "main"]
INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run a subcommand and return its exit status."""
    try:
        systems.refuse_others(UsageError)
        from ipexperf.commands import command_line

        return command_line.answer(list(sys.argv[1:] if argv is None else argv))
    except KeyboardInterrupt:
        print("ipexperf: interrupted", file=sys.stderr)
        return INTERRUPTED
    except UsageError as error:  # any other is answered inside
        print(f"ipexperf: {error}", file=sys.stderr)
        return USAGE_ERROR


if __name__ == "__main__":
    sys.exit(main())
