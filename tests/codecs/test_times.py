"""The times that a log may give around a text: each form, and what had to be assumed for it."""

from __future__ import annotations

from hypothesis import strategies as st

from dialects import envelope_of
from dialects._time import assumption_of, instant_of_log
from tests.each import for_each
from tests.lanes import generated

NINE = "2026-11-21T09:00:00Z"
UNIX = "2023-11-14T22:13:20"

# How it is written: (the instant, what was assumed).
TIMES: dict[str, tuple[str | None, str | None]] = {
    NINE: (NINE, None),
    "2026-11-21t09:00:00z": (NINE, None),
    "2026-11-21 09:00:00 UTC": (NINE, None),
    "2026-11-21T10:00:00+01:00": (NINE, None),
    "2026-11-21T10:00:00 +0100": (NINE, None),
    "2026-11-21T04:30-04:30": (NINE, None),
    "2026-11-21T09:00:00,25Z": ("2026-11-21T09:00:00.25Z", None),
    "20261121T090000Z": (NINE, None),
    "2026-W47-6T09:00Z": (NINE, None),
    "2026-11-21 09:00:00": (NINE, "zone"),
    "2026-11-21T09:00": (NINE, "zone"),
    "2026-11-21": ("2026-11-21T00:00:00Z", "zone"),
    "Sat, 21 Nov 2026 10:00:00 +0100": (NINE, None),
    "21 Nov 2026 09:00 GMT": (NINE, None),
    "Sat, 21 Nov 2026 09:00:00 -0000": (NINE, "zone"),
    "Sat, 21 Nov 2026 09:00:00": (NINE, "zone"),
    "1700000000": (f"{UNIX}Z", None),
    "1700000000.25": (f"{UNIX}.25Z", None),
    "1700000000250": (f"{UNIX}.25Z", "milliseconds"),
    "1700000000250.5": (f"{UNIX}.2505Z", "milliseconds"),
    "1700000000123456": (f"{UNIX}.123456Z", "microseconds"),
    "1700000000123456789": (f"{UNIX}.123456Z", "nanoseconds"),
    "1.7e+18": (f"{UNIX}Z", "nanoseconds"),
    "21 Nov 2026 09:00 XYZ": (None, None),
    "99 Nov 2026 09:00 GMT": (None, None),
    "2026-13-40T09:00:00Z": (None, None),
    "1999-12-31T23:59:59Z": (None, None),
    "9999-12-31T23:59:59-23:00": (None, None),
    "soon": (None, None),
    "0": (None, None),
    "-1": (None, None),
    "١٧٠٠٠٠٠٠٠٠": (None, None),
    "1" * 100: (None, None),
}


@for_each(TIMES)
def test_a_time_is_read_with_what_was_assumed(said: str) -> None:
    instant, assumed = TIMES[said]
    assert instant_of_log(said) == instant
    if instant is not None:
        assert assumption_of(said) == assumed


@for_each([1700000000, 1700000000000, 1700000000000000, 1700000000000000000, 1.7e18])
def test_a_number_in_json_is_read_by_its_size(said: float) -> None:
    assert envelope_of({"at": said}).at == f"{UNIX}Z"


@generated(500, said=st.text() | st.from_regex(r"[0-9TZ:+\-. ,eE]{1,70}", fullmatch=True))
def test_no_text_stops_it(said: str) -> None:
    instant = instant_of_log(said)
    assert instant is None or instant.endswith("Z")
    assert assumption_of(said) in (None, "zone", "milliseconds", "microseconds", "nanoseconds")
