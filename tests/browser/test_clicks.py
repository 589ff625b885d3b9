"""Every button and link of every page takes its own click: nothing lies over it, at the sizes of four screens."""

from __future__ import annotations

from typing import Final

import pytest
from django.urls import reverse

from tests.browser.conftest import Open, at
from tests.browser.test_accessibility import PAGES, fill_workspace, show
from tests.inspector.conftest import Cast

SIZES: Final = ((360, 640), (1366, 768), (768, 1024), (1920, 1080))
# The link that skips to the content is in sight only while it has the focus.
FIND_COVERED: Final = """() => {
  const covered = [];
  for (const each of document.querySelectorAll("a[href]:not(.skip), button, summary, input[type=submit]")) {
    // What no reader is told of is there for the Enter key alone.
    if (each.ariaHidden === "true") continue;
    if (each.disabled || !each.checkVisibility({ visibilityProperty: true, opacityProperty: true })) continue;
    each.scrollIntoView({ block: "center", inline: "center", behavior: "instant" });
    const boxes = Array.from(each.getClientRects()).filter((box) => box.width > 1 && box.height > 1);
    // A link is often broken over lines, and its middle then is beside it.
    const inside = boxes.map((box) => [box.left + box.width / 2, box.top + box.height / 2]);
    // The middle of the box around a curve is not on the curve, and curves cross.
    for (const path of each.querySelectorAll(":scope > path")) {
      for (const part of [0.1, 0.3, 0.5, 0.7, 0.9]) {
        const at = path.getPointAtLength(path.getTotalLength() * part).matrixTransform(path.getScreenCTM());
        inside.push([at.x, at.y]);
      }
    }
    if (inside.length === 0) continue;
    const hits = inside.map(([x, y]) => document.elementFromPoint(x, y));
    if (hits.some((hit) => hit && (each.contains(hit) || hit.closest("label")?.control === each))) continue;
    const over = hits[0];
    covered.push(`${each.outerHTML.slice(0, 120)} is under ${over ? over.outerHTML.slice(0, 80) : "nothing"}`);
  }
  return covered;
}"""


@pytest.mark.parametrize(("width", "height"), SIZES)
@pytest.mark.long(seconds=100)
def test_nothing_takes_the_click_of_another(open_page: Open, cast: Cast, width: int, height: int) -> None:
    fill_workspace(cast)
    page = open_page(cast.owner, at("overview"), width=width)
    stranger = open_page(None, reverse("pages:sign-in"), width=width)
    faults = []
    for each in (page, stranger):
        each.set_viewport_size({"width": width, "height": height})
    for name in PAGES:
        shown = show(page, stranger, name)
        faults += [f"{name}: {fault}" for fault in shown.evaluate(FIND_COVERED)]
    assert not faults, "\n".join(faults)
