"""Reports of audit samples: how it was drawn, each conversation in the order it was drawn, and what came of each."""

from __future__ import annotations

import re
import uuid

import pytest
from django.core.exceptions import ValidationError
from django.test import Client

from inspector.audit.models import ReviewItem
from inspector.audit.models.reviews import AuditSample
from inspector.audit.reviews.verdicts import claim, judge_item
from inspector.audit.samples import draw_sample, list_drawn
from inspector.exports import making
from inspector.exports.models import Export
from tests.inspector.conftest import Cast, deliver, resolve_all

from .conftest import ask, make, read
from .test_reports import _Tags, say

pytestmark = pytest.mark.django_db


@pytest.fixture
def sample(cast: Cast) -> AuditSample:
    """Three conversations whose messages stand between one another in time."""
    lines = [say(number, cid="abc"[number % 3], mid=f"m{number}") for number in range(1, 10)]
    deliver(cast, b"".join(lines), name="log.jsonl")
    resolve_all()
    return draw_sample(membership=cast.owner, name="Autumn", stratum="dialect", wanted=2, seed="oak", reviewers=2)


def judge(cast: Cast, sample: AuditSample, *, by: int) -> None:
    item = ReviewItem.objects.get(queue=sample.queue, conversation=list_drawn(sample=sample)[0].conversation)
    for membership in (cast.auditor, cast.owner)[:by]:
        held = claim(membership=membership, item=item)
        seen = bytes(held.conversation.settled_digest or b"")
        judge_item(membership=membership, item=held, verdict="concern", comment="Look <here>.", seen=seen)


def test_a_sample_is_reported_as_it_was_drawn(cast: Cast, sample: AuditSample, monkeypatch: pytest.MonkeyPatch) -> None:
    # One record a step: whatever a step begins with, each conversation has one head.
    monkeypatch.setattr(making, "REPORT_STEP_RECORDS", 1)
    judge(cast, sample, by=2)
    export = make(ask(cast, form="html", sample_id=sample.pk, title="Autumn"))
    text = read(export).decode()
    drawn = list_drawn(sample=sample)
    heads = re.findall(r"<h2>(\d+): ([abc]|note)</h2>", text)
    assert [int(place) for place, _ in heads] == [1, 2]
    assert (export.listed, export.messages, text.count("<article>")) == (6, 6, 6)
    for fact in ("oak", "2 of 3 conversations", bytes(sample.digest).hex(), "1 of 2"):
        assert fact in text
    # Under each head stand the messages of that conversation alone, in their order.
    parts = re.split(r"<h2>\d+: [^<]*</h2>", text)[1:]
    for each, part in zip(drawn, parts, strict=True):
        assert bytes(each.identity).hex() in part
        assert str(each.conversation_id) in part
        wanted = re.findall(r"&quot;cid&quot;:&quot;(.)&quot;", part)
        assert set(wanted) == {each.conversation.native_id}
        numbers = [int(number) for number in re.findall(r"&quot;mid&quot;:&quot;m(\d)&quot;", part)]
        assert numbers == sorted(numbers)
        assert len(numbers) == 3
    assert "Concern, by amir and olivia" in text
    assert parts[0].count("Look &lt;here&gt;.") == 2
    tags = _Tags()
    tags.feed(text)
    assert not tags.tags & {"script", "a", "img", "link", "form"}


def test_a_report_of_a_sample_tells_nothing_of_a_blind_review(cast: Cast, sample: AuditSample) -> None:
    judge(cast, sample, by=1)
    text = read(make(ask(cast, form="html", sample_id=sample.pk, title="Autumn"))).decode()
    assert "0 of 2" in text
    assert "Look" not in text
    assert "concern" not in text.lower()


def test_a_sample_is_asked_for_on_its_page(cast: Cast, sample: AuditSample, auditor: Client) -> None:
    page = auditor.get(f"/w/acme/reviews/samples/{sample.pk}/").content.decode()
    address = f"/w/acme/exports/new/?sample={sample.pk}&amp;form=html"
    assert address in page
    form = auditor.get(address.replace("&amp;", "&")).content.decode()
    assert re.search(r'value="html"[^>]*checked', form)
    response = auditor.post("/w/acme/exports/new/", {"sample": str(sample.pk), "form": "html"}, follow=True)
    assert "The audit sample" in response.content.decode()
    assert Export.objects.get().sample_id == sample.pk
    assert auditor.get("/w/acme/exports/new/?sample=no").status_code == 404
    with pytest.raises(ValidationError, match="no such sample"):
        ask(cast, form="html", sample_id=uuid.uuid4())
