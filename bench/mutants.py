"""`make mutants`: change a random line of what must not be wrong, and see whether its tests fail (R24).

Of each group so many places are drawn by the seed, each is changed in one way in a copy of the tree, and the group's
tests run until the first fails. What survives is printed with its line: it is a test that is missing, or a change that
changes nothing.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

PROJECT = Path(__file__).parents[1]
# For each group where its code is, and the tests that are to notice.
GROUPS = {
    "decoders": (
        ["codecs/dialects/nslip/*.py", "codecs/dialects/clowl/*.py", "codecs/dialects/agent_lingua/*.py"],
        ["tests/codecs"],
    ),
    "identity": (
        ["inspector/intake/identity.py"],
        ["tests/inspector/intake", "tests/inspector/threads/test_stories.py"],
    ),
    "ledger": (["inspector/ledger/*.py"], ["tests/inspector/ledger", "tests/clients/test_verifier.py"]),
    "permissions": (
        ["inspector/accounts/selectors.py", "inspector/api/authentication.py", "inspector/trail/row_security.py"],
        [
            *(
                f"tests/inspector/{name}"
                for name in ("test_access.py", "accounts", "trail", "api", "pages/test_workspaces.py")
            )
        ],
    ),
}
# They take arguments of their own.
APART = frozenset({"core/VariableInserter", "core/VariableReplacer"})
# So long may the tests of one take; what hangs is noticed.
PATIENCE_S = 900.0


@dataclass(frozen=True)
class Place:
    """A place that an operator can change: the number of its occurrence in a file, and its line."""

    file: str
    line: int
    column: int
    operator: str
    occurrence: int


def list_places(root: Path, patterns: Sequence[str]) -> Iterator[Place]:
    """Every change that can be made to these files."""
    for path in sorted(each for pattern in patterns for each in root.glob(pattern)):
        text = path.read_text()
        tree, idle = get_ast(text), list(list_annotations(text))
        for name in sorted(set(operator_names()) - APART):
            occurrence = 0
            for node in ast_nodes(tree):
                for (line, column), _ in get_operator(name)().mutation_positions(node):
                    if not any(begin <= (line, column) < end for begin, end in idle):
                        yield Place(str(path.relative_to(root)), line, column, name, occurrence)
                    occurrence += 1


def list_annotations(text: str) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """From where to where an annotation stands, which nothing runs, or a decorator, most of which say how a class is
    kept in memory."""
    for node in ast.walk(ast.parse(text)):
        said = (getattr(node, "annotation", None), getattr(node, "returns", None), *getattr(node, "decorator_list", ()))
        for one in filter(None, said):
            yield (one.lineno, one.col_offset), (one.end_lineno, one.end_col_offset)


def draw(places: Sequence[Place], count: int, chance: random.Random) -> list[Place]:
    """So many places, each as likely as any other however many ways there are to change it."""
    ways: dict[tuple[str, int, int], list[Place]] = {}
    for each in places:
        ways.setdefault((each.file, each.line, each.column), []).append(each)
    return [chance.choice(ways[place]) for place in chance.sample(sorted(ways), min(count, len(ways)))]


def is_noticed(root: Path, place: Place, tests: Sequence[str]) -> bool:
    """Whether a test fails where this place is changed."""
    file = root / place.file
    before = file.read_text()
    file.write_text(mutate_code(before, get_operator(place.operator)(), place.occurrence))
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-x",
        "-q",
        "-n",
        "0",
        "-m",
        "not long",
        "-p",
        "no:cacheprovider",
        *tests,
    ]
    try:
        return subprocess.run(command, cwd=root, capture_output=True, timeout=PATIENCE_S, check=False).returncode != 0
    except subprocess.TimeoutExpired:
        return True
    finally:
        file.write_text(before)


def copy_tree(root: Path) -> None:
    """The tree as it is, without what git does not know, with the migrated clusters of the tests."""
    names = subprocess.check_output(["git", "ls-files", "-z"], cwd=PROJECT, text=True).split("\0")
    for name in filter(None, names):
        if (PROJECT / name).is_file():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(PROJECT / name, root / name)
    if (PROJECT / ".pytest_cache").is_dir():
        shutil.copytree(PROJECT / ".pytest_cache", root / ".pytest_cache", symlinks=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw, change, and print what survived and the shares."""
    parser = argparse.ArgumentParser(prog="make mutants ARGS='…'", description=__doc__)
    parser.add_argument("--count", type=int, default=25, help="of each group (default 25)")
    parser.add_argument("--seed", type=int, default=24)
    parser.add_argument(
        "--group", choices=sorted(GROUPS), action="append", help="only this; may be given several times"
    )
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="inspector-mutants-") as folder:
        root = Path(folder)
        root.chmod(0o755)
        copy_tree(root)
        for name in options.group or GROUPS:
            patterns, tests = GROUPS[name]
            drawn = draw(list(list_places(root, patterns)), options.count, random.Random(options.seed))
            noticed = 0
            for place in drawn:
                was_noticed = is_noticed(root, place, tests)
                noticed += was_noticed
                if not was_noticed:
                    print(f"survived: {place.file}:{place.line}:{place.column} {place.operator}", flush=True)
            print(f"{name}: {noticed} of {len(drawn)} noticed, {noticed / len(drawn):.0%}", flush=True)
    return 0


if __name__ == "__main__":
    os.environ.pop("PYTHONPATH", None)
    sys.exit(main())
