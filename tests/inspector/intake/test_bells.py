"""What stands in the broker's queue and is no message: a worker drops it, says so, and goes on working."""

from __future__ import annotations

import base64
import json
import os
import secrets
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from inspector.intake.bells import is_message
from inspector.intake.models import Job
from inspector.threads.models import Message

from ..conftest import Cast, deliver
from .processes import celery
from .test_recovery import is_done, wait_for

MESSAGE = {
    "body": base64.b64encode(b"[[], {}, {}]").decode(),
    "content-encoding": "utf-8",
    "content-type": "application/json",
    "headers": {"task": "inspector.work", "id": "1"},
    "properties": {
        "body_encoding": "base64",
        "delivery_info": {"exchange": "", "routing_key": "celery"},
        "delivery_tag": "tag",
    },
}
NO_MESSAGES = [
    *(b'{"body": "', b"", b"\x00", b"\xff\xfe", b"[]", b"{}", b"1", b'"text"', b"null"),
    *(
        json.dumps({name: value for name, value in MESSAGE.items() if name != left_out}).encode()
        for left_out in MESSAGE
    ),
    json.dumps({**MESSAGE, "body": "no Base64"}).encode(),
    json.dumps({**MESSAGE, "properties": {"delivery_tag": 1}}).encode(),
]


def test_a_message_is_one_and_everything_else_is_none() -> None:
    assert is_message(MESSAGE)
    for name in MESSAGE:
        assert not is_message({**MESSAGE, name: None}), name


def put_in_folder(state: Path, _: str) -> None:
    for number, message in enumerate(NO_MESSAGES):
        (state / "broker" / "queue" / f"{number}_{secrets.token_hex(8)}.celery.msg").write_bytes(message)


def put_in_redis(_: Path, address: str) -> None:
    import redis

    redis.Redis.from_url(address).lpush("celery", *NO_MESSAGES)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("put", "address"),
    [
        pytest.param(put_in_folder, "", id="folder"),
        pytest.param(
            put_in_redis,
            os.environ.get("REDIS_URL", ""),
            id="redis",
            marks=pytest.mark.skipif("REDIS_URL" not in os.environ, reason="no Redis server: name one by REDIS_URL"),
        ),
    ],
)
def test_what_is_no_message_ends_no_worker(
    cast: Cast, tmp_path: Path, put: Callable[[Path, str], None], address: str
) -> None:
    words = ("worker", "--beat", "--concurrency=1", "-s", str(tmp_path / "beat"))
    log = tmp_path / "process.log"
    with celery(tmp_path, *words, **({"CELERY_BROKER_URL": address} if address else {})) as worker:
        deliver(cast, b"before\n")
        wait_for(is_done, 60, log)
        put(tmp_path, address)
        wait_for(lambda: log.read_text().count("is no message, and is dropped") >= len(NO_MESSAGES) - 1, 60, log)
        deliver(cast, b"after\n")
        wait_for(lambda: Message.objects.count() == 2 and is_done(), 60, log)
        with pytest.raises(subprocess.TimeoutExpired):
            worker.wait(timeout=0.5)
    assert not Job.objects.exclude(failure="").exists()
