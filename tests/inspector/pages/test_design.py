"""The design holds by measure: contrast of the tokens, vendored files as they were, every class and icon known."""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import product

from django.conf import settings

from dialects import PERFORMATIVES
from inspector.pages.templatetags.marks import FAMILIES, STATES
from inspector.threads.models import Conversation
from tests.each import for_each

STATIC = settings.BASE_DIR / "static"
TEMPLATES = settings.BASE_DIR / "templates"


def read_tokens() -> dict[str, tuple[str, str]]:
    """Each colour token as (light, dark)."""
    text = (STATIC / "css" / "tokens.css").read_text()
    return {
        name: (light, dark) for name, light, dark in re.findall(r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\);", text)
    }


def luminance(colour: str) -> float:
    """The relative luminance of WCAG 2.2."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


SURFACES = ("canvas", "surface", "sunken", "raised", "hover")
PAIRS = [
    *product(("ink-1", "ink-2", "ink-3", "accent"), SURFACES, [4.5]),
    *product(("info", "notice", "warning", "error", "done"), ("canvas", "surface", "sunken"), [4.5]),
    *((tone, f"{tone}-tint", 4.5) for tone in ("notice", "warning", "error", "done")),
    *product(("edge",), ("canvas", "surface", "sunken"), [3.0]),
    *((f"agent-{number}", surface, 3.0) for number in range(1, 9) for surface in ("surface", "canvas")),
    *(("on-agent", f"agent-{number}", 4.5) for number in range(1, 9)),
    ("on-accent", "accent", 4.5),
    ("accent-strong", "accent-tint", 4.5),
    ("ink-1", "accent-tint", 4.5),
    ("ink-1", "accent-mark", 4.5),
    ("surface", "ink-2", 4.5),
]


@for_each(PAIRS)
def test_contrast(front: str, back: str, least: float) -> None:
    tokens = read_tokens()
    for theme in (0, 1):
        assert contrast(tokens[front][theme], tokens[back][theme]) >= least, ("light", "dark")[theme]


def test_colours_stand_in_the_tokens_alone() -> None:
    for sheet in (STATIC / "css").glob("*.css"):
        if sheet.name != "tokens.css":
            colours = re.findall(r"#[0-9a-fA-F]{3,8}\b(?=[;,\s)])|\brgb\(|\bhsl\(", sheet.read_text())
            assert colours == [], sheet.name


def list_blocks(sheet: str) -> Iterator[tuple[str, str, frozenset[str]]]:
    """Each rule as the condition it stands under (media, container), its selector and its declarations."""
    around: list[str] = []
    held = ""
    for part in re.split(r"([{}])", re.sub(r"/\*.*?\*/", "", sheet, flags=re.DOTALL)):
        if part == "{":
            around.append(" ".join(held.rpartition(";")[2].split()))
        elif part == "}":
            selector = around.pop()
            outside = " ".join(each for each in around if not each.startswith("@layer"))
            yield outside, selector, frozenset(" ".join(each.split()) for each in held.split(";") if each.strip())
        held = part if part not in "{}" else ""


def test_no_block_of_declarations_stands_twice() -> None:
    seen: dict[tuple[str, frozenset[str]], list[str]] = defaultdict(list)
    for path in sorted((STATIC / "css").glob("*.css")):
        for condition, selector, declarations in list_blocks(path.read_text("utf-8")):
            if len(declarations) >= 4:
                seen[condition, declarations].append(f"{path.name} {selector}")
    assert len(seen) > 150
    assert [places for places in seen.values() if len(places) > 1] == []


def test_vendored_files_are_what_the_list_says() -> None:
    listed = re.findall(r"(\S+\.js)\s+([0-9a-f]{64})", (STATIC / "vendor" / "VENDOR.txt").read_text())
    assert {name for name, _ in listed} == {
        str(one.relative_to(STATIC / "vendor")) for one in (STATIC / "vendor").rglob("*.js")
    }
    for name, digest in listed:
        assert hashlib.sha256((STATIC / "vendor" / name).read_bytes()).hexdigest() == digest


def test_every_icon_that_is_asked_for_exists() -> None:
    known = set(re.findall(r'<symbol id="([\w-]+)"', (STATIC / "icons.svg").read_text()))
    asked = {name for page in TEMPLATES.rglob("*.html") for name in re.findall(r'{% icon "([\w-]+)"', page.read_text())}
    asked |= {shape for shape, _ in STATES.values()} | {"info", "notice", "warning", "error"}
    assert asked <= known


def test_every_act_has_a_family_and_every_state_a_shape() -> None:
    assert set(FAMILIES) == set(PERFORMATIVES)
    assert set(Conversation.State.values) <= set(STATES)


def test_every_template_states_its_context() -> None:
    silent = [page.name for page in TEMPLATES.rglob("*.html") if "{% comment %}" not in page.read_text()]
    assert set(silent) <= {"_brand.html", "_styles.html", "_keys.html"}
