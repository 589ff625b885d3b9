from __future__ import annotations
import os, random, io, contextlib
import pytest
from .test_blocks import *
from inspector.threads.models import Fact
pytestmark = pytest.mark.django_db

def dump():
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        pic = picture()
        for c in Conversation.objects.all():
            print("CONV", bytes(c.key).hex())
            for n, t in enumerate(pic[bytes(c.key).hex()]["tasks"]):
                print("T", n, {k: v for k, v in t.items() if k in ("native_id","request","within","steps","acknowledged_at","asked_at","first_at","is_answered","act","requester","performer")})
            for m in Message.objects.filter(conversation=c).order_by("place"):
                print(m.order_time.strftime("%M:%S"), bytes(m.place).hex()[-20:-8], int.from_bytes(bytes(m.place)[-4:]), m.dialect, m.performative, m.sender, m.receivers, m.task_id, str(m.task)[:6], m.parent_basis, "P", str(m.parent)[-6:], str(m.pk)[-6:], m.parent_why)
    return out.getvalue()

@pytest.mark.parametrize("seed", range(int(os.environ.get("DFROM", "0")), int(os.environ.get("DTO", "6"))))
def test_debug(cast, monkeypatch, seed):
    shrink(monkeypatch, 4)
    lines = list(Babbler(seed).babble(BABBLED))
    deliver(cast, *lines, door=Door.API)
    settle_all(is_examined=False)
    expected = picture()
    one = dump()
    forget()
    chance = random.Random(seed * 100 + 1)
    left = chance.sample(lines, len(lines))
    while left:
        size = chance.randint(1, 20)
        deliver(cast, *left[:size], door=Door.API)
        del left[:size]
        if chance.random() < 0.6:
            settle_all(is_examined=False)
    settle_all(is_examined=False)
    found = differences(expected, picture())
    if found:
        two = dump()
        resolve_anew()
        third = differences(expected, picture())
        print("\n".join(found[:6])); print("ANEW", third[:4]); print("AT ONCE"); print(one); print("BY AND BY"); print(two)
        assert False
