"""The readings of usual messages, made of little: they must be like any other in all that can be seen of them."""

from __future__ import annotations

import pickle

import pytest

import dialects
from dialects._record import Reading, WireReading
from dialects.clowl import DIALECT as CLOWL
from dialects.nslip import DIALECT as NSLIP

WIRES = {
    "clowl": '{"clowl":"0.2","mid":"a1","ts":1709078400,"p":"REQ","from":"a","to":"b","cid":"c",'
    '"body":{"t":"x","d":{}}}',
    "nslip": '@a3|f0|c1|S0|d1|T1|g1|k1|q2|t"tidy_up"#',
}
READ = {"clowl": CLOWL.read, "nslip": NSLIP.read}
each = pytest.mark.parametrize("slug", WIRES)


def read(slug: str) -> WireReading:
    reading = READ[slug](WIRES[slug], None)
    assert isinstance(reading, WireReading), "a usual message is read into a light reading"
    return reading


@each
def test_it_equals_a_plain_reading_and_shows_itself_as_one(slug: str) -> None:
    light = read(slug)
    plain = light.plain()
    assert type(plain) is Reading
    assert light == plain
    assert plain == light
    assert light.to_dict() == plain.to_dict()
    assert light.given().keys() == plain.given().keys()
    assert repr(light).startswith(f"Reading(dialect='{slug}', layers=(Layer(id=0, kind='wire'")


@each
def test_names_given_anew_stand_beside_its_wire(slug: str) -> None:
    light = read(slug)
    changed = light.replace(candidates=(), notes=())
    assert (changed.wire, changed.layers, changed.candidates) == (WIRES[slug], light.layers, ())
    assert changed.fields == light.fields
    layered = light.replace(layers=(*light.layers, dialects.Layer(id=1, kind="plaintext", text="t")), tree=lambda: ())
    assert [layer.id for layer in layered.layers] == [0, 1]
    assert layered.fields == ()
    with pytest.raises(TypeError):
        light.replace(colour="red")


@each
def test_it_does_not_change_and_can_be_pickled(slug: str) -> None:
    light = read(slug)
    with pytest.raises(AttributeError):
        light.dialect = "prose"
    assert light.fields
    assert pickle.loads(pickle.dumps(light)) == light


@each
def test_telling_is_pure(slug: str) -> None:
    light = read(slug)
    before = light.to_dict()
    context = dialects.Context()
    first, second = (dialects.get_dialect(slug).tell(light, context, dialects.NoKeys()) for _ in range(2))
    assert [message.to_dict() for message in first.messages] == [message.to_dict() for message in second.messages]
    assert light.to_dict() == before
    assert light.messages[0].english == ()
