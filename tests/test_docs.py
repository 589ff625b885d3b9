"""The documents against the code: what they name exists, what exists is named, their examples come out as printed."""

from __future__ import annotations

import ast
import importlib.util
import json
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import dialects

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = {path.name: path.read_text() for path in (*DOCS.glob("*.md"), *ROOT.glob("*.md"))}
SETTINGS = ROOT / "inspector" / "settings.py"


def load_generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_generate", DOCS / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


GENERATOR = load_generator()


# ---------------------------------------------------------------- the record


def tables_of(text: str) -> dict[str, set[str]]:
    """The names in the first column of each table, by the nearest words before it."""
    found: dict[str, set[str]] = {}
    for table in re.finditer(r"([^\n]+)\n\n\| name \| type \| meaning \|\n\|---\|---\|---\|\n((?:\|.*\n)+)", text):
        found[table[1]] = set(re.findall(r"^\| `(\w+)` \|", table[2], re.MULTILINE))
    return found


def names_of(kind: Any) -> set[str]:
    return set(kind._order)


def test_the_record_page_names_every_name_of_every_value_and_no_other() -> None:
    tables = tables_of(PAGES["record.md"])
    record, message = PAGES["record.md"].split("## The message\n")
    headings = ("act", "Who", "Ids", "When", "stands", "leans on", "Security", "English")
    told = {name for heading, names in tables.items() if heading.endswith(headings) for name in names}
    assert told == names_of(dialects.Message)
    # What a reading shows of itself, and the envelope it was read with.
    assert tables["## The reading"] == set(dialects.read("").to_dict()) | {"envelope"}
    for words, kind in (
        ("A **candidate** has these names:", dialects.Candidate),
        ("An **envelope** has these:", dialects.Envelope),
        ("A **field** has these:", dialects.Field),
        ("A **note** has these:", dialects.Note),
    ):
        assert tables[words] == names_of(kind), words
    for kind in (dialects.Layer, dialects.Reference, dialects.Failure, dialects.Security, dialects.Moment):
        assert "{" + ", ".join(kind._order) + "}" in record + message, kind.__name__
    assert "{" + ", ".join(dialects.Segment._order) + "}" in message
    assert f"now {dialects.SHAPE_VERSION}." in record


WORKED = re.findall(
    r"<!-- begin: record (\w+) -->\s+The raw text:\s+```text\n(.*?)\n```\s+"
    r"(?:Its envelope:\s+```json\n(.*?)\n```\s+)?The record:\s+```json\n(.*?)\n```\s+The English:\s+> ([^\n]+)",
    PAGES["record.md"],
    re.DOTALL,
)


def test_there_is_a_worked_record_for_each_dialect() -> None:
    assert {slug for slug, *_ in WORKED} == {dialect.slug for dialect in dialects.all_dialects()} - {"prose"}


@pytest.mark.parametrize(("slug", "wire", "envelope", "record", "english"), WORKED, ids=[row[0] for row in WORKED])
def test_a_worked_record_is_what_the_codec_makes_of_its_wire(
    slug: str, wire: str, envelope: str, record: str, english: str
) -> None:
    around = dialects.envelope_of(json.loads(envelope)) if envelope else None
    reading = dialects.decode(wire, around)
    printed = json.loads(record)
    assert reading.dialect == printed["dialect"] == slug
    assert reading.messages[0].sentence == english
    for told, message in zip(printed["messages"], reading.messages, strict=True):
        assert_told(told, message.to_dict(), left_out={"english", "also", "gloss"})
    assert printed.get("from_envelope", []) == list(reading.from_envelope)


def assert_told(printed: Any, real: Any, *, left_out: Iterable[str] = ()) -> None:
    """The page prints what is there, and leaves out nothing but what is absent, false or empty."""
    if isinstance(real, dict):
        for name, value in real.items():
            if name in left_out:
                assert name not in printed
            elif name in printed:
                assert_told(printed[name], value)
            else:
                assert is_absent(value), name
        assert set(printed) <= set(real)
    elif isinstance(real, list):
        assert len(printed) == len(real)
        for one, other in zip(printed, real, strict=True):
            assert_told(one, other)
    else:
        assert printed == real


def is_absent(value: Any) -> bool:
    if isinstance(value, dict):
        return all(is_absent(inner) for inner in value.values())
    return value in (None, False, [])


# ---------------------------------------------------------------- generated parts


def test_the_generated_parts_are_up_to_date() -> None:
    stale = [path.name for path, _ in GENERATOR.find_stale()]
    assert not stale, f"run `make docs`: {', '.join(stale)}"


def test_a_changed_part_is_found_stale_and_written_anew() -> None:
    page = "before\n<!-- begin: acts all -->\n| stale |\n<!-- end -->\nafter\n"
    renewed = GENERATOR.renew(page)
    assert renewed.startswith("before\n")
    assert renewed.endswith("\nafter\n")
    assert "stale" not in renewed
    assert all(f"| `{name}` |" in renewed for name in dialects.PERFORMATIVES)
    assert GENERATOR.renew(renewed) == renewed


def test_the_dialects_page_has_notes_and_vocabulary_of_every_dialect() -> None:
    page = PAGES["dialects.md"]
    for dialect in dialects.all_dialects():
        assert f"\n## {dialect.title}\n" in page
        assert f"<!-- begin: notes {dialect.slug} -->" in page
        assert (f"<!-- begin: glossary {dialect.slug} -->" in page) == bool(dialect.glossary)
        assert all(f"| `{note.code}` |" in page for note in dialect.notes), dialect.slug


# ---------------------------------------------------------------- settings


def read_variables(path: Path) -> Iterator[tuple[str, ast.expr | None]]:
    """Each environment variable that a module reads, with the expression of its default."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "os.environ" and is_text(node.slice):
            yield ast.literal_eval(node.slice), None
        if not isinstance(node, ast.Call) or not node.args or not is_text(node.args[0]):
            continue
        called = ast.unparse(node.func)
        if re.fullmatch(r"env\.\w+|os\.environ\.(get|setdefault|pop)|os\.getenv", called):
            yield ast.literal_eval(node.args[0]), node.args[1] if len(node.args) > 1 else None


def is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def show_default(node: ast.expr | None) -> str | None:
    """The default as the page writes it; None where it is computed, and the page says so in words."""
    try:
        value = eval(compile(ast.Expression(node), "default", "eval"), {}) if node else None
    except NameError:
        return None
    if value in ("", None, []):
        return None
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(value) if isinstance(value, list) else str(value)


def settings_table(heading: str) -> dict[str, str]:
    section = PAGES["settings.md"].split(f"## {heading}\n")[1].split("\n## ")[0]
    return dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \| [^|]+ \|$", section, re.MULTILINE))


def test_the_settings_page_lists_every_variable_of_the_settings_with_its_default() -> None:
    table, read = settings_table("The product"), dict(read_variables(SETTINGS))
    assert set(table) == set(read)
    wrong = {
        name: default
        for name, node in read.items()
        if (default := show_default(node)) is not None and table[name] != f"`{default}`"
    }
    assert not wrong


def test_the_settings_page_lists_every_variable_that_starting_reads() -> None:
    paths = [*(ROOT / "inspector" / "embedded").glob("*.py"), ROOT / "manage.py"]
    paths += [ROOT / "inspector" / name for name in ("asgi.py", "wsgi.py", "celery.py")]
    read = {name for path in paths for name, _ in read_variables(path)}
    from tests.throw_away import KEPT_FROM_TESTS

    assert set(settings_table("`make run` and `make test`")) == read | set(KEPT_FROM_TESTS)


# ---------------------------------------------------------------- architecture


def test_every_folder_and_app_is_described() -> None:
    page = PAGES["architecture.md"]
    assert len(page.splitlines()) <= 300, "five screens of sixty lines"
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()
    folders = {Path(name).parts[0] for name in listed if len(Path(name).parts) > 1 and not name.startswith(".")}
    missing = [folder for folder in sorted(folders) if f"`{folder}/`" not in page]
    assert not missing, "folders without a word"
    apps = re.findall(r'^    "inspector\.(\w+)",$', SETTINGS.read_text(), re.MULTILINE)
    # An app without models is not installed, and is one all the same.
    homes = {path.parent.name for path in (ROOT / "inspector").glob("*/__init__.py")}
    assert set(apps) <= homes
    assert not [app for app in homes if f"`{app}/`" not in page]


def test_every_path_that_the_pages_name_exists() -> None:
    named = {
        (page, name)
        for page, text in PAGES.items()
        for name in re.findall(
            r"`((?:codecs|inspector|tests|docs|samples|static|templates|requirements)/[\w./-]*)`", text
        )
    }
    assert len(named) > 10
    missing = [(page, name) for page, name in sorted(named) if not (ROOT / name).exists()]
    assert not missing


def read_names() -> tuple[set[str], dict[str, set[str]]]:
    """The names of all functions and classes, and those of each module; of a class its methods."""
    every: set[str] = set()
    known: dict[str, set[str]] = defaultdict(set)
    for path in (*(ROOT / "inspector").rglob("*.py"), *(ROOT / "codecs").rglob("*.py")):
        body = ast.parse(path.read_text()).body
        names = {node.name for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
        known[path.parent.name if path.stem == "__init__" else path.stem] |= names
        for node in body:
            if isinstance(node, ast.ClassDef):
                own = (each for each in node.body if isinstance(each, ast.FunctionDef | ast.ClassDef))
                known[node.name] |= {each.name for each in own}
            elif isinstance(node, ast.ImportFrom) and path.stem == "__init__":
                known[path.parent.name] |= {each.asname or each.name for each in node.names}
        every |= names
    return every, known


def test_every_function_that_is_named_with_its_module_is_in_it() -> None:
    every, known = read_names()
    texts = PAGES | {str(path.relative_to(ROOT)): path.read_text() for path in (ROOT / "inspector").rglob("*.py")}
    named = {
        (page, module, name)
        for page, text in texts.items()
        for module, name in re.findall(r"`(?:\w+[./])*(\w+)\.([a-z]+_\w+|[A-Z]\w+)(?:\(\))?`", text)
        if name in every
    }
    assert len(named) > 20
    assert not [each for each in sorted(named) if each[2] not in known[each[1]] and each[1:] != ("rpc", "Status")]


def test_links_between_pages_lead_somewhere() -> None:
    homes = {name: (ROOT if (ROOT / name).exists() else DOCS) for name in PAGES}
    links = [
        (page, link)
        for page, text in PAGES.items()
        for link in re.findall(r"\]\((?!https?:|#)([^)#\s]+)(?:#[\w-]*)?\)", text)
    ]
    assert links
    missing = [(page, link) for page, link in links if not (homes[page] / link).exists()]
    assert not missing


def test_no_app_imports_what_the_page_places_above_it() -> None:
    (line,) = re.findall(r"^`pages` ▸ .*$", PAGES["architecture.md"], re.MULTILINE)
    order = [re.findall(r"\w+", each) for each in line.split(" ▸ ")]
    assert len(order) > 8
    for place, app in ((place, app) for place, apps in enumerate(order) for app in apps):
        home = ROOT / "codecs" / app if app == "dialects" else ROOT / "inspector" / app
        module = ROOT / "inspector" / f"{app}.py"
        paths = [module] if module.exists() else list(home.rglob("*.py"))
        # A command is a door, like a page.
        paths = [path for path in paths if "management" not in path.parts]
        assert paths, app
        above = {name for apps in order[:place] for name in apps} & {
            name for path in paths for name in apps_imported_by(path)
        }
        assert not above, f"{app} imports {above}"


def apps_imported_by(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        yield from (name.split(".")[1] for name in names if name.startswith("inspector."))


# ---------------------------------------------------------------- commands


def test_every_make_target_that_the_pages_name_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {target for text in PAGES.values() for target in re.findall(r"`make ([a-z-]+)", text)}
    named |= {target for text in PAGES.values() for target in re.findall(r"^make ([a-z-]+)", text, re.MULTILINE)}
    assert {"run", "test", "docs"} <= named <= targets


def test_every_bench_that_the_pages_name_exists() -> None:
    from bench.run import SUITES

    named = {suite for text in PAGES.values() for suite in re.findall(r"`make bench ARGS='--suite (\w+)", text)}
    assert {"codecs", "cost"} <= named <= set(SUITES)
    rows = re.findall(r"^\| ([PR]\d+) \|(.*)\|$", PAGES["figures.md"], re.MULTILINE)
    assert [goal for goal, _ in rows] == [f"P{n}" for n in range(1, 31)] + [f"R{n}" for n in range(1, 31)]
    # Whatever has a figure has the command that prints it.
    assert not [goal for goal, said in rows if "`make " not in said and "not measured: " not in said]


def test_each_name_on_the_screen_in_the_tutorial_is_one_of_the_product() -> None:
    sources = [*(ROOT / "templates").rglob("*.html"), *(ROOT / "inspector" / "pages").glob("*.py")]
    sources += [ROOT / "inspector" / "audit" / name for name in ("models/reviews.py", "rules/decoding.py")]
    shown = "".join(path.read_text() for path in sources)
    named = re.findall(r"\*\*([^*]+)\*\*", PAGES["tutorial.md"].partition("## 1.")[2])
    assert len(named) > 15
    assert not [name for name in named if not re.search(rf"[>}}\"]{re.escape(name)}[<{{\"]", shown)]
    # What it says of the last message of its log is what is told.
    log = re.search(r"'END_OF_LOG'\n(.*?)END_OF_LOG\n", PAGES["tutorial.md"], re.DOTALL)
    assert log
    (sentence,) = re.findall(r"^> (.+)$", PAGES["tutorial.md"], re.MULTILINE)
    assert dialects.decode(log[1].splitlines()[-1]).messages[0].sentence.startswith(sentence.removesuffix("."))


def codec_commands() -> list[str]:
    blocks = [block for text in PAGES.values() for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL)]
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    return sorted({line for line in lines if line.startswith("PYTHONPATH=codecs ")})


@pytest.mark.parametrize("line", codec_commands())
def test_a_codec_command_of_the_pages_works_when_pasted(line: str) -> None:
    """Pasted, with this Python in the place of the page's."""
    command = re.sub(r" (python3|\.venv/bin/python) ", f" {sys.executable} ", line)
    assert command != line
    done = subprocess.run(["bash", "-c", command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_the_pages_have_codec_commands_to_paste() -> None:
    assert len(codec_commands()) >= 2


def test_every_test_that_the_pages_name_exists() -> None:
    named = {each for text in PAGES.values() for each in re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", text)}
    assert len(named) > 50
    assert not [(path, name) for path, name in named if f"def {name}(" not in (ROOT / path).read_text()]
