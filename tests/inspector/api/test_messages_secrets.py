"""What a key may not see, no query of the API finds by its characters."""

from __future__ import annotations

import pytest
from django.test import Client

from inspector.accounts.services import create_api_key

from ..conftest import Cast, deliver, settle_all

pytestmark = pytest.mark.django_db

LINE = b'{"clowl":"0.3","mid":"s1","p":"REQ","from":"a","to":"b","cid":"c","auth":"opensesame-7731","body":{"t":"x"}}\n'


def test_raw_finds_masked_characters_only_for_a_key_that_may_see_them(cast: Cast, client: Client) -> None:
    deliver(cast, LINE)
    settle_all()
    counts = {}
    for name, scopes in (("plain", ["read"]), ("exact", ["read", "secrets"])):
        token = create_api_key(workspace=cast.workspace, name=name, scopes=scopes, created_by=cast.owner.user)[1]
        answer = client.get(
            "/api/v1/messages", {"q": 'raw:"opensesame-7731"'}, headers={"Authorization": f"Bearer {token}"}
        )
        assert answer.status_code == 200
        counts[name] = len(answer.json()["results"])
    assert counts == {"plain": 0, "exact": 1}
