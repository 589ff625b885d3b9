"""The description of the API against the API: requests made up from it, sent to the WSGI application, checked by it.

The short form sends the same requests each time. `make fuzz-api` sends fifty thousand new ones.
"""

from __future__ import annotations

import json
import os
import re
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import pytest
import schemathesis
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections, transaction
from django.test import Client
from drf_spectacular.drainage import GENERATOR_STATS
from drf_spectacular.plumbing import ComponentRegistry, ResolvedComponent
from drf_spectacular.settings import spectacular_settings
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from openapi_spec_validator import OpenAPIV31SpecValidator
from rest_framework.serializers import Serializer
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.parameters import ParameterLocation
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

import dialects
from inspector.accounts.models import ApiKey
from inspector.accounts.services import create_api_key
from inspector.api.problems import CONTENT_TYPE, TITLES
from inspector.api.urls import urlpatterns
from inspector.audit.comments import write_comment
from inspector.audit.models import AuditSample, Finding, ReviewItem, ReviewQueue
from inspector.audit.models.reviews import Comment
from inspector.audit.reviews.queues import create_queue, fill_queue
from inspector.audit.reviews.verdicts import claim, judge_item
from inspector.audit.samples import draw_sample
from inspector.exports.models import Export
from inspector.intake.models import Delivery, Record, Withdrawal
from inspector.intake.withdrawals import withdraw_delivery
from inspector.ledger.notes import COSIGNATURE, Note, Verifier, cosign, read_note
from inspector.ledger.proofs import get_checkpoint
from inspector.ledger.sequencing import enter_new
from inspector.retention.models import Erasure
from inspector.threads.models import Agent, Conversation, Message, Trace
from inspector.threads.selectors import find_message
from tests.lanes import begin_with

from ..conftest import Cast, deliver, resolve_all
from ..exports.conftest import ask as ask_for
from ..exports.conftest import make

pytestmark = pytest.mark.django_db

# Where a protocol has refusals in a form of its own: by operation, and by path.
OTLP: Final = ["application/json", "application/x-protobuf"]
PROTOCOLS: Final = dict.fromkeys(
    ("export_spans", "export_logs", "/api/v1/otlp/v1/traces", "/api/v1/otlp/v1/logs"), OTLP
)
LONG: Final = int(os.environ.get("API_REQUESTS", "0"))
LOG: Final = [
    b'{"clowl":"0.2","mid":"m1","ts":1795118400,"p":"REQ","from":"oscar","to":"radar","cid":"c1",'
    b'"auth":"s3cret-t0ken","body":{"t":"search","d":{"q":"tea","n":1e400}}}\n',
    b'{"raw":"@a3|f0|c1|S0|d1|T1|k4|t\\"count aisle 6\\"#","at":"2026-11-21T09:00:00Z","conversation":"c2"}\n',
    b'{"raw":"?Uk/co","from":"oscar","to":["radar","eve"],"conversation":"c3","trace":"goal"}\n',
    '{"raw":"👽42|@H|~+1d|$bWVldGluZw==","at":"2026-11-21T09:00:05Z","conversation":"c4","id":"e-2"}\n'.encode(),
    b'{"raw":"lone \\ud800 and nul \\u0000","from":"\\udfff","conversation":"\\ud800"}\n',
    b"\xff\xfe no text\n",
]
CHECKS: Final = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    response_headers_conformance,
]
# What addresses begin with: the operations of one resource are asked in one store.
RESOURCES: Final = sorted({str(url.pattern).split("/")[1] for url in urlpatterns if str(url.pattern).startswith("v1/")})
FEW_EXAMPLES: Final = 3
SHORT_EXAMPLES: Final = 30
# Of so many requests made up by chance some are sure to be granted; of fewer it is a matter of luck.
MANY_EXAMPLES: Final = 100
# How many requests were answered with which status.
SENT: Final[Counter[int]] = Counter()
RECORDS: Final = [
    dialects.decode(wire).to_dict()
    for wire in ('@a3|f0|c1|S0|d1|T1|k4|t"count aisle 6"#', "?Uk/co", "👽42|@H|~+1d|$bWVldGluZw==", "hello")
]


@pytest.fixture(scope="module", autouse=True)
def say_how_many(request: pytest.FixtureRequest) -> Iterator[None]:
    """The long form says at its end what was sent."""
    yield
    if LONG:
        told = ", ".join(f"{count:,} were answered {status}" for status, count in sorted(SENT.items()))
        with request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
            print(f"\n{SENT.total():,} requests sent: {told}")


def find_doubts(schema_of: Callable[[], Any]) -> list[str]:
    """What the generator of the description was in doubt about: two components of one name, what it cannot read."""
    GENERATOR_STATS.reset()
    try:
        with GENERATOR_STATS.silence():
            schema_of()
        return [*GENERATOR_STATS._warn_cache, *GENERATOR_STATS._error_cache]
    finally:
        GENERATOR_STATS.reset()


def test_the_description_is_made_without_a_doubt() -> None:
    """Two components of one name would be described as one of them, whichever comes first."""
    assert find_doubts(lambda: spectacular_settings.DEFAULT_GENERATOR_CLASS().get_schema(public=True)) == []


def read_schema() -> Any:
    """The description as a client gets it."""
    return json.loads(Client().get("/api/schema/?format=json").content)


def test_the_description_passes_a_strict_validator() -> None:
    assert [str(error) for error in OpenAPIV31SpecValidator(read_schema()).iter_errors()] == []


def test_the_validator_finds_what_cannot_be() -> None:
    values: dict[str, Any] = {"type": "string", "enum": ["a"]}
    asked = {
        "parameters": [{"name": "a", "in": "query", "schema": values}],
        "responses": {"200": {"description": "A."}},
    }
    schema = {"openapi": "3.1.0", "info": {"title": "A", "version": "1"}, "paths": {"/a": {"get": asked}}}
    assert not list(OpenAPIV31SpecValidator(schema).iter_errors())
    values["default"] = 1
    assert list(OpenAPIV31SpecValidator(schema).iter_errors())


def test_each_operation_has_a_name_of_its_own_and_says_what_each_refusal_means() -> None:
    operations = [operation for path in read_schema()["paths"].values() for operation in path.values()]
    names = [operation["operationId"] for operation in operations]
    assert len(names) == len(set(names)) > 50
    for operation in operations:
        refusals = {status: answer for status, answer in operation["responses"].items() if status >= "400"}
        assert {"400", "401", "403", "406", "429", "503"} <= set(refusals), operation["operationId"]
        for status, answer in refusals.items():
            assert answer["description"] == TITLES[int(status)]
            assert list(answer["content"]) == PROTOCOLS.get(operation["operationId"], [CONTENT_TYPE])


def test_two_components_of_one_name_are_a_doubt() -> None:
    def register_both() -> None:
        known = ComponentRegistry()
        for number in (1, 2):
            made = type("StepSerializer", (Serializer,), {"__doc__": f"Number {number}."})
            component = ResolvedComponent(name="Step", type=ResolvedComponent.SCHEMA, schema={"a": 1}, object=made)
            known.register_on_missing(component)

    assert "identical names" in "".join(find_doubts(register_both))


@cache
def read_description() -> Any:
    """The API as described, read once: making the description takes longer than most tests that go by it."""
    return schemathesis.openapi.from_wsgi("/api/schema/?format=json", get_wsgi_application())


@pytest.fixture
def api(db: None) -> Iterator[Any]:
    """The API as described, asked within the transaction of the test: no request may close its connection."""
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    try:
        yield read_description()
    finally:
        for signal in (request_started, request_finished):
            signal.connect(close_old_connections)


@pytest.fixture
def headers(cast: Cast, settings: Any) -> dict[str, str]:
    settings.LIMITS = {**settings.LIMITS, "requests_per_minute": 0}
    key = create_api_key(workspace=cast.workspace, name="all", scopes=ApiKey.Scope.values, created_by=cast.owner.user)[
        1
    ]
    return {"Authorization": f"Bearer {key}"}


def judge_blindly(cast: Cast, conversation: Conversation) -> None:
    """The first of two verdicts, which can be withdrawn."""
    queue = create_queue(membership=cast.owner, name="two", reviewers=2)
    fill_queue(queue=queue, conversations=[conversation.pk], why="", membership=cast.owner)
    item = claim(membership=cast.owner, item=queue.items.get())
    seen = bytes(conversation.settled_digest or b"")
    judge_item(membership=cast.owner, item=item, verdict="fine", comment="", seen=seen)


@pytest.fixture
def bodies(known: dict[str, list[str]]) -> dict[str, list[Any]]:
    """What is sent now and then, as a body or a query, where what is made up would always be refused."""
    held = ReviewItem.objects.exclude(holder=None).get().conversation
    return {
        "POST /api/v1/encode": RECORDS,
        "POST /api/v1/reviews/items/{item_id}/verdict": [
            {"verdict": "fine", "seen": bytes(held.settled_digest or b"").hex()}
        ],
        "POST /api/v1/samples": [{"name": "drawn", "stratum": "channel", "wanted": 1}],
        "POST /api/v1/messages/{message_id}/comments": [{"start": 0, "end": 1, "words": "Why?"}],
        "POST /api/v1/findings/{finding_id}/acts": [{"state": "fixed", "reason": "So."}, {"assignee": ""}],
        "POST /api/v1/comments/{comment_id}/acts": [{"act": "resolved"}, {"act": "reply", "words": "So."}],
        "POST /api/v1/ledger/cosignatures": [cosign_latest(held.workspace_id)],
        "POST /api/v1/workspace/acts": [{"act": "rename", "name": "Renamed"}],
        "POST /api/v1/workspaces": [{"slug": "made", "name": "Made"}],
        "POST /api/v1/erasures": [{"do": "preview", "kind": "record", "id": known["record_id"][0]}],
        "GET /api/v1/ledger/checkpoint": [{}],
        "GET /api/v1/ledger/proofs/consistency": [{"from": 1}],
        "GET /api/v1/ledger/proofs/inclusion": [{"kind": "record", "id": known["record_id"][0]}],
    }


def cosign_latest(workspace_id: uuid.UUID) -> dict[str, str]:
    """What a witness sends."""
    checkpoint = get_checkpoint(workspace_id)
    assert checkpoint
    key, text = Ed25519PrivateKey.generate(), read_note(checkpoint.note).text
    verifier = Verifier("witness.example", key.public_key().public_bytes_raw(), COSIGNATURE)
    return {"note": str(Note(text, (cosign(text, "witness.example", key, 1),))), "key": str(verifier)}


@pytest.fixture
def known(cast: Cast) -> dict[str, list[str]]:
    """What is there to be asked for, by the name of its place in an address."""
    deliver(cast, *LOG)
    withdraw_delivery(membership=cast.owner, delivery=deliver(cast, LOG[1], name="again.log"), reason="sent twice")
    resolve_all()
    enter_new(at_once=True)
    make(ask_for(cast, membership=None, api_key=ApiKey.objects.filter(name="all").first(), is_masked=True))
    queue = create_queue(membership=cast.owner, name="queue")
    ids = Conversation.objects.order_by("pk").values_list("pk", flat=True)[:2]
    fill_queue(queue=queue, conversations=list(ids), why="", membership=cast.owner)
    judge_blindly(cast, Conversation.objects.order_by("pk")[2])
    claim(membership=cast.owner, item=queue.items.order_by("pk")[0])
    message = find_message(workspace=cast.workspace, message_id=Message.objects.shown().order_by("pk")[0].pk)
    assert message is not None
    write_comment(membership=cast.owner, message=message, start=0, end=1, words="Why?")
    draw_sample(membership=cast.owner, name="sample", stratum="dialect", wanted=2)
    Erasure.objects.create(workspace=cast.workspace, kind="age", reason="kept for 30 days")
    models = {
        "sample": AuditSample,
        "comment": Comment,
        "queue": ReviewQueue,
        "item": ReviewItem,
        "export": Export,
        "agent": Agent,
        "message": Message,
        "conversation": Conversation,
        "trace": Trace,
        "delivery": Delivery,
        "record": Record,
        "finding": Finding,
        "erasure": Erasure,
    }
    # In the order they came, so that the same numbers draw the same ones each time.
    ids_by_place = {
        f"{name}_id": list(map(str, model.objects.order_by("pk").values_list("pk", flat=True)))
        for name, model in models.items()
    }
    # Only one item can have a verdict, and one have its verdict withdrawn, which few of few requests would find.
    verdict = "/api/v1/reviews/items/{item_id}/verdict"
    aimed = {"POST": ReviewItem.objects.exclude(holder=None), "DELETE": ReviewItem.objects.filter(state="second")}
    # Of two deliveries one is withdrawn.
    withdrawn = [str(Withdrawal.objects.get().delivery_id)]
    named = {f"{method} /api/v1/deliveries/{{delivery_id}}/withdrawal": withdrawn for method in ("GET", "DELETE")}
    return ids_by_place | named | {f"{method} {verdict}": [str(rows.get().pk)] for method, rows in aimed.items()}


def find_operation(api: Any, name: str) -> Any:
    method, path = name.split(" ")
    return api[path][method]


def list_operations() -> list[str]:
    """All of them, as in `GET /api/v1/messages`."""
    paths = read_description().raw_schema["paths"]
    return [f"{method.upper()} {path}" for path, methods in paths.items() for method in methods]


# All resources in one store with few examples, and each in one of its own with many.
STORES: Final = [(RESOURCES, FEW_EXAMPLES), *(([resource], SHORT_EXAMPLES) for resource in RESOURCES)]


@pytest.mark.parametrize(
    ("resources", "examples"),
    begin_with(1, STORES, seconds=5),
    ids=lambda each: each[0] if isinstance(each, list) and len(each) == 1 else None,
)
def test_the_answer_is_as_described(
    api: Any,
    headers: dict[str, str],
    known: dict[str, list[str]],
    bodies: dict[str, list[Any]],
    resources: list[str],
    examples: int,
) -> None:
    operations = list_operations()
    if LONG and examples == SHORT_EXAMPLES:
        examples = -(-LONG // (2 * len(operations)))
    for name in (name for name in operations if name.split("/")[3] in resources):
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            try:
                # What is asked of one operation changes nothing for the next.
                with transaction.atomic():
                    ask(api, headers, known, bodies, name, mode, examples)
                    transaction.set_rollback(True)
            except BaseException as error:
                error.add_note(f"{name}, {mode.name.lower()}")
                raise


def ask(
    api: Any,
    headers: dict[str, str],
    known: dict[str, list[str]],
    bodies: dict[str, list[Any]],
    name: str,
    mode: GenerationMode,
    examples: int,
) -> None:
    """Send requests to an operation that are as described (positive), or are not, and check each answer.

    Of some operations nothing can be sent that is not as described.
    """
    statuses: Counter[int] = Counter()
    try:
        # Once for all requests: making it takes longer than a request.
        cases = find_operation(api, name).as_strategy(generation_mode=mode)
    except schemathesis.errors.InvalidSchema:
        assert mode == GenerationMode.NEGATIVE
        return

    @settings(
        max_examples=examples,
        derandomize=not LONG,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(data=st.data())
    def send(data: Any) -> None:
        case = data.draw(cases)
        places = sorted(set(case.path_parameters or ()) & set(known))
        aimed = {place: data.draw(st.sampled_from(known.get(name, known[place]))) for place in places}
        body = data.draw(st.sampled_from(bodies.get(name, [None])))
        # Most made-up ids lead nowhere, so that half of the requests ask for what is there; the first one always does,
        # or luck would say whether anything was granted.
        if data.draw(st.booleans()) or not statuses:
            case.path_parameters = {**(case.path_parameters or {}), **aimed}
            if name in bodies and mode == GenerationMode.POSITIVE:
                setattr(case, "query" if name.startswith("GET ") else "body", body)
        # Nobody works here while a request waits, so that each would wait to its end.
        case.headers = {name: value for name, value in (case.headers or {}).items() if name.lower() != "prefer"}
        response = case.call(headers=headers)
        statuses[response.status_code] += 1
        SENT[response.status_code] += 1
        # A body may be any bytes, and the key and the ids are right: only wrong parameters are sure to be refused.
        query = case.meta.components.get(ParameterLocation.QUERY)
        # A made-up parameter whose value is an empty list never gets into the address, and cannot be refused.
        sent = parse_qs(urlsplit(response.request.url).query, keep_blank_values=True)
        is_wrong = query is not None and query.mode.is_negative and set(case.query or ()) <= set(sent)
        case.validate_response(response, checks=[*CHECKS, negative_data_rejection] if is_wrong else CHECKS)

    if mode == GenerationMode.NEGATIVE:
        with suppress(schemathesis.errors.InvalidSchema):
            send()
        if statuses or not LONG:
            return
        # So that there are as many requests as were asked for.
        mode = GenerationMode.POSITIVE
    send()
    if not LONG or examples >= MANY_EXAMPLES:
        assert min(statuses) < 300, statuses


def test_another_method_is_refused_with_those_there_are(api: Any, headers: dict[str, str]) -> None:
    for described, operations in api.items():
        path = described.replace("{", "").replace("}", "")
        there = {one.lower() for one in operations}
        for method in sorted({"get", "post", "put", "patch", "delete", "trace"} - there):
            found = re.sub(r"\w+_id", "019dd7a2-5d3a-7c11-9f7e-2f4f6a1b8e55", path)
            response = Client().generic(method.upper(), found, b"x", content_type="text/plain")
            assert response.status_code == 405, (method, path, response.content)
            assert response["Content-Type"] in ("application/problem+json", *PROTOCOLS.get(path, ()))
            allowed = {one.strip().lower() for one in response["Allow"].split(",")}
            assert allowed == there | {"options"} | ({"head"} if "head" in allowed else set()), (method, path)


def test_the_description_covers_every_address(api: Any) -> None:
    described = {re.sub(r"\{\w+\}", "ID", path) for path in api}
    there = {
        re.sub(r"<[^>]+>", "ID", f"/api/{url.pattern}") for url in urlpatterns if str(url.pattern).startswith("v1/")
    }
    assert described == there


def test_an_answer_that_is_not_as_described_is_found(api: Any, headers: dict[str, str]) -> None:
    """A check that cannot fail holds nothing: a status that the description does not have is noticed."""
    case = find_operation(api, "GET /api/v1/limits").Case()
    response = case.call(headers=headers)
    case.validate_response(response, checks=CHECKS)
    response.status_code = 418
    with pytest.raises(BaseExceptionGroup):
        case.validate_response(response, checks=CHECKS)


@pytest.mark.parametrize("kind", ["text/html", "image/png", "text/yaml"])
def test_a_description_of_another_type_is_no_answer(kind: str) -> None:
    answer = Client().get("/api/schema/", headers={"Accept": kind})
    assert (answer.status_code, answer["Content-Type"]) == (406, "application/problem+json")
    assert "application/json" in answer.json()["detail"]
