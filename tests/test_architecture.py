"""The rules of the house as tests: who may import whom, what a module is called, and that each says what it is."""

import ast
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from .each import for_each

PROJECT = Path(__file__).resolve().parents[1]
DIALECTS = PROJECT / "codecs" / "dialects"
INSPECTOR = PROJECT / "inspector"
CLIENTS = PROJECT / "clients"
FORBIDDEN_NAMES = {"utils", "util", "helpers", "helper", "common", "core", "misc", "shared"}
ALLOWED_IN_DIALECTS = set(sys.stdlib_module_names) | {"cryptography", "dialects"}
# From the top to the bottom; what stands in one row may not know each other, or must not matter.
LAYERS = (
    ("embedded",),
    ("front",),
    ("urls", "wsgi", "asgi", "server"),
    ("pages", "api", "worker"),
    ("pipeline",),
    ("steps",),
    ("reading",),
    ("erasing",),
    ("exports", "backups"),
    ("ledger",),
    ("audit",),
    ("search",),
    ("browsing", "opening"),
    ("threads",),
    ("intake",),
    ("keyring",),
    ("retention",),
    ("accounts",),
    ("trail",),
)
BESIDE = {
    "bounds",
    "characters",
    "database",
    "settings",
    "celery",
    "logs",
    "schema",
    "starting",
    "tokens",
    "upkeep",
    "__init__",
}
LEVELS = {name: level for level, row in enumerate(LAYERS) for name in row}


def list_modules(*folders: Path) -> list[Path]:
    return sorted(path for folder in folders for path in folder.rglob("*.py") if "__pycache__" not in path.parts)


PRODUCT = list_modules(DIALECTS, INSPECTOR, CLIENTS)
EVERYTHING = [
    *list_modules(PROJECT / "codecs", INSPECTOR, CLIENTS, PROJECT / "tests", PROJECT / "bench"),
    PROJECT / "manage.py",
]


def name_of(path: Path) -> str:
    return str(path.relative_to(PROJECT))


def list_imports(path: Path) -> Iterator[str]:
    """The absolute names a module imports, inside functions too."""
    root = DIALECTS.parent if path.is_relative_to(DIALECTS) else PROJECT
    package = list(path.relative_to(root).with_suffix("").parts[:-1])
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)


def test_there_is_something_to_hold() -> None:
    assert len(PRODUCT) > 50
    assert set(list_imports(INSPECTOR / "embedded" / "state.py")) >= {"inspector.embedded.EmbeddedError", "fcntl"}


@for_each(list_modules(DIALECTS), name_of=name_of)
def test_the_codecs_import_the_standard_library_cryptography_and_themselves(path: Path) -> None:
    foreign = {name for name in list_imports(path) if name.partition(".")[0] not in ALLOWED_IN_DIALECTS}
    assert not foreign


@for_each(list_modules(DIALECTS), name_of=name_of)
def test_no_dialect_imports_another(path: Path) -> None:
    names = {entry.stem for entry in DIALECTS.iterdir() if not entry.name.startswith(("_", "."))}
    own = path.relative_to(DIALECTS).parts[0].removesuffix(".py")
    if own not in names:  # The registry finds the dialects by looking into the folder; it too names none.
        own = ""
    known = {name.split(".")[1] for name in list_imports(path) if name.startswith("dialects.")}
    assert not known & (names - {own})


@for_each(list_modules(INSPECTOR), name_of=name_of)
def test_nothing_points_back_up(path: Path) -> None:
    parts = path.relative_to(INSPECTOR).parts
    own = parts[0].removesuffix(".py")
    if own in BESIDE or "migrations" in parts or "management" in parts:
        return
    assert own in LEVELS, f"{own} has no place among the layers: architecture.md and LAYERS have to say where it stands"
    known = {name.split(".")[1] for name in list_imports(path) if name.startswith("inspector.")} - BESIDE - {own}
    higher = {name for name in known if name in LEVELS and LEVELS[name] < LEVELS[own]}
    assert not higher, f"{own} imports {higher}, which stand above it"


def test_the_linter_of_imports_holds_the_same_layers() -> None:
    contracts = tomllib.loads((PROJECT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    assert [tuple(row.replace("|", ":").replace(" ", "").split(":")) for row in layers] == list(LAYERS)


def lint_imports(folder: Path, path: str) -> subprocess.CompletedProcess[str]:
    code = "from importlinter.cli import lint_imports_command as lint; lint()"
    command, environment = [sys.executable, "-c", code, "--no-cache"], {"PYTHONPATH": path, "PATH": "/usr/bin:/bin"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


# `make lint` asks it too, and what is imported is held by the tests above.
@pytest.mark.long(seconds=15)
def test_the_linter_of_imports_is_content() -> None:
    told = lint_imports(PROJECT, f"{PROJECT / 'codecs'}:{PROJECT}")
    assert told.returncode == 0, told.stdout + told.stderr
    assert "0 broken" in told.stdout


def test_the_linter_of_imports_would_notice(tmp_path: Path) -> None:
    """A contract that cannot break holds nothing: a copy with an arrow turned round in each has to fail."""
    for name, text in {
        "inspector/__init__.py": "",
        "inspector/accounts/__init__.py": "import inspector.threads\n",
        "inspector/threads/__init__.py": "",
        "inspector/threads/tasks.py": "import inspector.threads.states\n",
        "inspector/threads/states.py": "import inspector.threads.tasks\n",
        "dialects/__init__.py": "",
        "dialects/clowl.py": "import dialects.nslip\n",
        "dialects/nslip.py": "import django\n",
        **{f"inspector/{name}.py": "" for row in LAYERS for name in row if name not in ("accounts", "threads")},
        "inspector/api.py": "import celery\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "pyproject.toml").write_text((PROJECT / "pyproject.toml").read_text())
    told = lint_imports(tmp_path, str(tmp_path))
    assert told.returncode != 0
    assert "4 broken" in told.stdout, told.stdout


@for_each(EVERYTHING, name_of=name_of)
def test_every_module_says_what_it_holds(path: Path) -> None:
    if "migrations" in path.parts or not path.read_text().strip():
        return  # What is generated, or empty, holds nothing to speak of.
    docstring = ast.get_docstring(ast.parse(path.read_text()))
    assert docstring, f"{name_of(path)} has no docstring"
    first = docstring.split("\n\n")[0].replace("\n", " ")
    assert first.rstrip('`)”"').endswith((".", "!", "?", ":")), (
        f"the first line of {name_of(path)} is no sentence: {first}"
    )


@for_each(EVERYTHING, name_of=name_of)
def test_every_module_is_named_for_its_noun(path: Path) -> None:
    assert not FORBIDDEN_NAMES & {part.removesuffix(".py").strip("_") for part in path.relative_to(PROJECT).parts}


def test_the_codecs_folder_is_a_source_root_and_no_package() -> None:
    # Python's own `codecs` has the name: a package here would hide it, or be hidden.
    assert not (PROJECT / "codecs" / "__init__.py").exists()
    beside = {entry.name for entry in (PROJECT / "codecs").iterdir()} - {"__pycache__"}
    assert beside == {"dialects", "pyproject.toml"}


def test_every_dialect_has_its_vectors() -> None:
    names = {entry.stem for entry in DIALECTS.iterdir() if not entry.name.startswith(("_", "."))}
    files = list((PROJECT / "tests" / "codecs" / "vectors").glob("*.json"))
    # A dialect may have several files: the one with its name, and others that name it.
    assert names <= {path.stem for path in files}
    assert names == {json.loads(path.read_text("utf-8")).get("dialect", path.stem) for path in files}


@for_each(PRODUCT, name_of=name_of)
def test_no_failure_is_swallowed_without_a_word(path: Path) -> None:
    text = path.read_text()
    lines = text.splitlines()
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.ExceptHandler):
            continue
        assert node.type is not None, f"{name_of(path)}:{node.lineno} catches everything, even the end of the program"
        if all(isinstance(step, ast.Pass) for step in node.body):
            said = "".join(lines[node.lineno - 1 : node.end_lineno])
            assert "#" in said, f"{name_of(path)}:{node.lineno} does not say why nothing is to be done"


def test_only_the_first_steps_of_the_embedded_package_know_django() -> None:
    knowing = {
        path.name
        for path in list_modules(INSPECTOR / "embedded")
        if any(name.partition(".")[0] == "django" for name in list_imports(path))
    }
    assert knowing == {"first_steps.py"}


def test_no_group_is_possessive() -> None:
    """Python 3.11.0 to 3.11.4 match such groups wrongly where they backtrack: an atomic group says the same."""
    # The repetition may also begin a literal, behind a name that holds the group.
    possessive = re.compile(r"(?:(?<!\\)\)|\br[bf]?[\"'])(?:[*?+]|\{[0-9,]+\})\+")
    named = [
        f"{path.name}: {line.strip()}"
        for path in (*list_modules(DIALECTS), *list_modules(INSPECTOR))
        for line in path.read_text().splitlines()
        if possessive.search(line) and re.search(r"\br[bf]?[\"']", line)
    ]
    assert not named
