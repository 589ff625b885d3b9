"""The pages of audit samples: drawn by a form, printed with everything it takes to draw it again."""

from __future__ import annotations

import re

import pytest
from django.test import Client
from django.urls import reverse

from inspector.audit.models import AuditSample, ReviewItem
from tests.inspector.conftest import Cast, deliver, settle_all

from ..audit.test_samples import LINES

pytestmark = pytest.mark.django_db

NEW = reverse("pages:new-sample", args=["acme"])
FORM = {"name": "October <b>", "wanted": "6", "stratum": "pair", "seed": "s1", "reviewers": "2", "criteria": "a\nb"}


def read(client: Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200
    return " ".join(answer.content.decode().split())


@pytest.mark.long(seconds=2)
def test_a_sample_is_drawn_and_says_how(auditor: Client, viewer: Client, cast: Cast) -> None:
    deliver(cast, *LINES)
    settle_all()
    assert viewer.get(NEW).status_code == 403
    assert viewer.post(NEW, FORM).status_code == 403
    for wrong in ({"wanted": "0"}, {"seed": "é"}, {"stratum": "x"}, {"name": ""}, {"since": "2030-01-01"}):
        refused = auditor.post(NEW, FORM | wrong)
        assert refused.status_code == 422
        assert 'role="alert"' in refused.content.decode()
    kept = auditor.post(NEW, FORM | {"since": "2026-10-01", "until": "9999-12-31"})
    sample = AuditSample.objects.get()
    assert kept["Location"] == reverse("pages:sample", args=["acme", sample.pk])
    page = read(viewer, kept["Location"])
    assert "October &lt;b&gt;" in page
    assert '<code id="seed">s1</code>' in page
    assert bytes(sample.digest).hex() in page
    for name, population, drawn in (*sample.strata, ["<strong>All</strong>", "<strong>24</strong>", 6]):
        shown = f"<strong>{drawn}</strong>" if "strong" in str(name) else drawn
        assert f'{name}</th><td class="number">{population}</td><td class="number">{shown}</td>' in page
    assert page.count(">Make one</a>") == 6
    item = ReviewItem.objects.filter(queue=sample.queue)[0]
    assert reverse("pages:review-item", args=["acme", item.pk]) in page
    assert "October &lt;b&gt;" in read(viewer, reverse("pages:samples", args=["acme"]))
    again = auditor.post(NEW, FORM | {"name": "Again", "since": "2026-10-01"})
    digests = re.findall(r'<span id="digest">([0-9a-f]{64})', page + read(viewer, again["Location"]))
    assert len(digests) == 2
    assert len(set(digests)) == 1


def test_strata_are_called_as_people_call_them(auditor: Client, viewer: Client, cast: Cast) -> None:
    """Dialects by their names; what is stored stays what the seed was drawn by."""
    deliver(cast, *LINES)
    settle_all()
    kept = auditor.post(NEW, FORM | {"stratum": "dialect"})
    assert [name for name, *_ in AuditSample.objects.get().strata] == ["lambda_lang", "prose"]
    page = read(viewer, kept["Location"])
    assert "Λ Lambda" in page
    assert "lambda_lang" not in page


def test_a_long_sample_is_read_a_page_at_a_time(auditor: Client, cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inspector.pages.samples.PAGE_ROWS", 4)
    monkeypatch.setattr("inspector.pages.samples.MAX_STRATA", 1)
    deliver(cast, *LINES)
    settle_all()
    address = auditor.post(NEW, FORM)["Location"]
    first = read(auditor, address)
    assert "1 more stratum" in first
    further = re.search(r'rel="next" href="([^"]+)"', first)
    assert further is not None
    second = read(auditor, address + further[1])
    assert (first.count("Make one"), second.count("Make one")) == (4, 2)
