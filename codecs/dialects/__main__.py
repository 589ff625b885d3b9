"""`python -m dialects`: the codecs from a shell, without Django.

Exit codes: 0 all was decoded, 1 some was not, 2 the command was used wrongly.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from typing import NoReturn

import dialects

from ._shell import InputError, Run, list_dialects

ALL_DECODED, SOME_NOT, WRONG_USAGE = 0, 1, 2
_PROGRAM = "python -m dialects"


class _Parser(argparse.ArgumentParser):
    """A parser whose complaint is one line."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and stop."""
        self.exit(WRONG_USAGE, f"{self.prog}: {message}\n")


def build_parser() -> argparse.ArgumentParser:
    """The arguments of the four commands."""
    parser = _Parser(prog=_PROGRAM, description="Read and write the terse dialects that AI agents speak.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=_Parser)

    decode = commands.add_parser("decode", help="read a log, or envelopes, into normalised records and English")
    decode.add_argument("--dialect", metavar="NAME", help="read every record in this dialect")
    decode.add_argument("--format", choices=("json", "english", "gloss", "tree"), default="json")
    kind = decode.add_mutually_exclusive_group()
    kind.add_argument("--log", action="store_true", help="frame the input as an upload would be (the default)")
    kind.add_argument(
        "--envelopes", action="store_true", help="each line is one JSON envelope, with prior and keys if need be"
    )
    detect = commands.add_parser("detect", help="say which dialects the records of a log may be in")
    encode = commands.add_parser("encode", help="write normalised records, one JSON value a line, in a dialect")
    encode.add_argument("--dialect", metavar="NAME", required=True)
    for command in (decode, detect, encode):
        command.add_argument("files", nargs="*", metavar="FILE", help="- or none is standard input; gzip is opened")
    commands.add_parser("list", help="list the dialects")
    return parser


def _choose(arguments: argparse.Namespace) -> tuple[Iterator[str], Run | None]:
    """The lines that the command prints, and the run that counts its failures."""
    if arguments.command == "list":
        return list_dialects(), None
    run = Run(
        arguments.files or ["-"],
        dialect=getattr(arguments, "dialect", None),
        format_name=getattr(arguments, "format", "json"),
        pause=sys.stdout.flush,
    )
    if arguments.command == "decode":
        return run.decode_envelopes() if arguments.envelopes else run.decode_log(), run
    return (run.detect() if arguments.command == "detect" else run.encode()), run


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code."""
    parser = build_parser()
    arguments = parser.parse_args(argv)
    if getattr(arguments, "dialect", None):
        try:
            dialects.get_dialect(arguments.dialect)
        except dialects.UnknownDialectError as error:
            parser.error(str(error))
    lines, run = _choose(arguments)
    try:
        for line in lines:
            sys.stdout.buffer.write(line.encode() + b"\n")
        sys.stdout.flush()
    except InputError as error:
        sys.stdout.flush()
        sys.stderr.write(f"{_PROGRAM}: {error}\n")
        return WRONG_USAGE if error.is_usage else SOME_NOT
    except BrokenPipeError:
        # Whoever read the lines has seen enough; the interpreter must not complain of it at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return SOME_NOT
    except KeyboardInterrupt:
        return 130
    return SOME_NOT if run and run.failures else ALL_DECODED


if __name__ == "__main__":
    sys.exit(main())
