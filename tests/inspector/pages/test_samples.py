"""The pages of audit samples: drawn by a form, printed with everything it takes to draw it again."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from inspector.audit.models import AuditSample, ReviewItem
from tests.inspector.conftest import Cast, take_in

from ..audit.test_samples import LINES
from .conftest import page_of, read, shows

pytestmark = pytest.mark.django_db

NEW = page_of("new-sample")
FORM = {"name": "October <b>", "wanted": "6", "stratum": "pair", "seed": "s1", "reviewers": "2", "criteria": "a\nb"}


@pytest.mark.long(seconds=2)
def test_a_sample_is_drawn_and_says_how(auditor: Client, viewer: Client, cast: Cast) -> None:
    take_in(cast, *LINES)
    assert viewer.get(NEW).status_code == 403
    assert viewer.post(NEW, FORM).status_code == 403
    for wrong in ({"wanted": "0"}, {"seed": "é"}, {"stratum": "x"}, {"name": ""}, {"since": "2030-01-01"}):
        refused = auditor.post(NEW, FORM | wrong)
        assert refused.status_code == 422
        assert 'role="alert"' in refused.content.decode()
    kept = auditor.post(NEW, FORM | {"since": "2026-10-01", "until": "9999-12-31"})
    sample = AuditSample.objects.get()
    assert kept["Location"] == page_of("sample", sample.pk)
    page = read(viewer, kept["Location"])
    shows(page, "October &lt;b&gt;", '<code id="seed">s1</code>', bytes(sample.digest).hex())
    for name, population, drawn in (*sample.strata, ["<strong>All</strong>", "<strong>24</strong>", 6]):
        shown = f"<strong>{drawn}</strong>" if "strong" in str(name) else drawn
        assert f'{name}</th><td class="number">{population}</td><td class="number">{shown}</td>' in page
    assert page.count(">Make one</a>") == 6
    item = ReviewItem.objects.filter(queue=sample.queue)[0]
    assert page_of("review-item", item.pk) in page
    assert "October &lt;b&gt;" in read(viewer, page_of("samples"))
    again = auditor.post(NEW, FORM | {"name": "Again", "since": "2026-10-01"})
    digests = re.findall(r'<span id="digest">([0-9a-f]{64})', page + read(viewer, again["Location"]))
    assert len(digests) == 2
    assert len(set(digests)) == 1


def test_strata_are_called_as_people_call_them(auditor: Client, viewer: Client, cast: Cast) -> None:
    """Dialects by their names; what is stored stays what the seed was drawn by."""
    take_in(cast, *LINES)
    kept = auditor.post(NEW, FORM | {"stratum": "dialect"})
    assert [name for name, *_ in AuditSample.objects.get().strata] == ["lambda_lang", "prose"]
    page = read(viewer, kept["Location"])
    shows(page, "Λ Lambda", never=["lambda_lang"])


def test_a_long_sample_is_read_a_page_at_a_time(auditor: Client, cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inspector.pages.reviews.PAGE_ROWS", 4)
    monkeypatch.setattr("inspector.pages.reviews.MAX_STRATA", 1)
    take_in(cast, *LINES)
    address = auditor.post(NEW, FORM)["Location"]
    first = read(auditor, address)
    assert "1 more stratum" in first
    further = re.search(r'rel="next" href="([^"]+)"', first)
    assert further is not None
    second = read(auditor, address + further[1])
    assert (first.count("Make one"), second.count("Make one")) == (4, 2)
