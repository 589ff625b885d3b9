"""Logs for the rules over keys, sessions and seals, over what stands in a text, and over who speaks."""

from __future__ import annotations

import zlib
from typing import Final

from .logs import Logs
from .writing import FOOT, pack, say

# Both offer encryption and agree on it, in a session.
_OFFER: Final = (
    "ada",
    "👽09|$j:eyJwcm90b2NvbCI6ImFnZW50LWxpbmd1YSIsInZlcnNpb24iOiIwLjQuMCIsInNlY3VyaXR5IjpbIlAiLCJCIiwiRSJdfQ==" + FOOT,
)
_AGREED: Final = (
    "bob",
    "^0|$j:eyJhY2NlcHRlZCI6dHJ1ZSwidmVyc2lvbiI6IjAuNC4wIiwic2VjdXJpdHkiOiJFIiwic2Vzc2lvbiI6InMxIn0=" + FOOT,
)
_SEALED: Final = ("ada", "👽137|@bob|#s1|$e:AQIDBAUGBwgJCgsM:EBBWkYG78B/p6E+JsRWsRc5WEXK9" + FOOT)
_SEALED_AGAIN: Final = ("ada", "👽137|@bob|#s1|$e:AQIDBAUGBwgJCgsM:GRJblIDkoOsCnB6/XbRHIaIm1WC7" + FOOT)
_SEALED_ANEW: Final = ("ada", "👽137|@bob|#s1|$e:AgMEBQYHCAkKCwwN:yzf+1+eOXxf5IzotqmWDw2URCOHl" + FOOT)
_OPENLY: Final = ("ada", "👽13|@bob|$aGk=" + FOOT)
_END: Final = ("ada", "👽08|#s1" + FOOT)
_KEY: Final = (
    "ada",
    "👽09|$j:eyJjcnlwdG8iOlsiWDI1NTE5K0FFUy1HQ00iXSwicHVia2V5IjoiTUNvd0JRWURLMlZ1QXlFQUI3akZRa2gyaHFlREFZVmZ5MjAvYW9x"
    "UkhOZnhtRHFiUk55ZHpTS0RuU009In0=" + FOOT,
)
_OTHER_KEY: Final = (
    "ada",
    "👽09|$j:eyJjcnlwdG8iOlsiWDI1NTE5K0FFUy1HQ00iXSwicHVia2V5IjoiTUNvd0JRWURLMlZ1QXlFQUZkZTNVR1Q5MGNvN2FJZlhXemZXcjhI"
    "OUpYUHRuZC92T05aOXc4M0srUnM9In0=" + FOOT,
)
_WEAK_KEY: Final = (
    "ada",
    "👽09|$j:eyJwdWJrZXkiOiJBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBPSJ9" + FOOT,
)
_MISLABELLED: Final = (
    "ada",
    "👽09|$j:eyJjcnlwdG8iOlsiWDI1NTE5K0FFUy1HQ00iXSwicHVia2V5IjoiTUNvd0JRWURLMlZ3QXlFQUI3akZRa2gyaHFlREFZVmZ5MjAv"
    "YW9xUkhOZnhtRHFiUk55ZHpTS0RuU009In0=" + FOOT,
)
_DOWN: Final = (
    ("bob", "^0|$j:eyJzZWN1cml0eSI6WyJQIiwiQiIsIkUiXX0=" + FOOT),
    _OFFER,
    ("bob", "^0|$j:eyJhY2NlcHRlZCI6dHJ1ZSwic2VjdXJpdHkiOiJCIn0=" + FOOT),
)


def _say_elsewhere(*lines: tuple[str, str]) -> str:
    return say(*((*line, 1.0) for line in lines)).replace('"conversation": "c"', '"conversation": "d"')


def _zip(text: str) -> str:
    return "z:" + pack(zlib.compress(text.encode()))


LOGS: Final[dict[str, Logs]] = {
    "not-authentic": Logs(
        passes=(say(_OFFER, _AGREED, _SEALED),),
    ),
    "nonce-reused": Logs(
        triggers=(say(_OFFER, _AGREED, _SEALED, _SEALED_AGAIN),),
        passes=(
            say(_OFFER, _AGREED, _SEALED, _SEALED_ANEW),
            say(_SEALED, ("ada", _SEALED_AGAIN[1].replace("#s1", "#s2"))),
        ),
    ),
    "downgrade": Logs(
        triggers=(say(*_DOWN),),
        passes=(say(_OFFER, _AGREED),),
    ),
    "plaintext-after-encryption": Logs(
        triggers=(say(_OFFER, _AGREED, _SEALED, _OPENLY), say(_OFFER, _AGREED, ("bob", "^0|$aGk=" + FOOT))),
        passes=(
            say(_OFFER, _AGREED, _SEALED, _SEALED_ANEW),
            say(_OPENLY),
            say(_OFFER, _AGREED, _SEALED, ("ada", "👽13|@eve|$aGk=" + FOOT)),
            say(_OFFER, _AGREED, _END, _OPENLY),
            say(_OFFER, _AGREED, _SEALED, _OFFER, _AGREED),
            say(_OFFER, ("bob", "^0|$j:" + pack({"accepted": True, "security": "B", "session": "s1"}) + FOOT), _OPENLY),
        ),
    ),
    "key-changed": Logs(
        triggers=(say(_KEY, _OTHER_KEY), say(_KEY) + _say_elsewhere(_OTHER_KEY)),
        passes=(
            say(_KEY, _KEY),
            say(_KEY, ("bob", _OTHER_KEY[1])),
            say(_KEY) + _say_elsewhere(_KEY, ("bob", _OTHER_KEY[1])),
        ),
    ),
    "key-shared": Logs(
        triggers=(say(_KEY, ("bob", _KEY[1])),),
        passes=(say(_KEY, _KEY), say(_KEY, ("bob", _OTHER_KEY[1]))),
    ),
    "key-unfit": Logs(
        triggers=(say(_WEAK_KEY),),
        passes=(say(_KEY), say(_MISLABELLED)),
    ),
    "key-mislabelled": Logs(
        triggers=(say(_MISLABELLED),),
        passes=(say(_KEY),),
    ),
    "session-not-agreed": Logs(
        triggers=(say(_SEALED), say(("ada", _SEALED[1].replace("|#s1", "")))),
        passes=(say(_OFFER, _AGREED, _SEALED),),
    ),
    "session-ended": Logs(
        triggers=(say(_OFFER, _AGREED, _END, _SEALED),),
        passes=(say(_OFFER, _AGREED, _SEALED, _END),),
    ),
    "session-overused": Logs(
        triggers=(say(_OFFER, _AGREED, (*_SEALED_ANEW, 1600)),),
        passes=(say(_OFFER, _AGREED, (*_SEALED_ANEW, 600)),),
    ),
    "seal-unsound": Logs(
        triggers=(
            say(("ada", "👽137|@bob|#s1|$e:AAAAAAAAAAAAAAA=:AAAAAAAAAAAAAAAAAAAAAAAAAAA=" + FOOT)),
            say(("ada", "👽137|@bob|#s1|$e:AQIDBAUGBwgJCgsM:aGk=" + FOOT)),
            say(("ada", "👽137|@bob|#s1|$e:AQIDBAUGBwgJCgsM" + FOOT)),
        ),
        passes=(say(_OFFER, _AGREED, _SEALED),),
    ),
    "promise-not-kept": Logs(
        triggers=(say(("ada", "👽137|@bob|$aGk=" + FOOT)), say(("ada", "👽138|@bob|$aGk=" + FOOT))),
        passes=(
            say(_OPENLY),
            say(_OFFER, _AGREED, _SEALED),
            say(("ada", "👽138|@bob|$z:" + pack(zlib.compress(b"hi " * 9)) + FOOT)),
        ),
    ),
    "token-in-clear": Logs(
        triggers=(
            say(("ada", "Use AKIA" + "ABCDEFGHIJKLMNOP" + " for the bucket.")),
            say(("ada", '@a3|f0|c1|S0|d1|T1|t"postgres://ada:hunter' + '2@db/orders"#')),
            say(("ada", "-----BEGIN RSA PRIVATE " + "KEY-----")),
            say(("ada", "👽13|@bob|$j:" + pack({"password": "Tr0ub4dor&" + "3x!"}) + FOOT)),
        ),
        passes=(
            say(("ada", "Use the key that I gave you for the bucket.")),
            say(("ada", "The password: required, and it must be rotated. token_limit: 4096")),
            say(("ada", "It wants Bearer authentication/authorisation.")),
            say(("ada", "The manual shows AKIAIOSFODNN7" + "EXAMPLE there.")),
        ),
    ),
    "hidden-characters": Logs(
        triggers=(
            say(("ada", "pay bo\u202eb now")),
            say(("ada", '@a3|f0|c1|S0|d1|T1|t"no\u200bw"#')),
            say(("ada", "👽13|@bob|$r:no\u200bw" + FOOT)),
        ),
        passes=(
            say(("ada", "pay bob now 👨\u200d👩\u200d👧")),
            say(("ada", "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645 and \u0915\u094d\u200d\u0937")),
            say(("ada", "\u05e9\u05dc\u05d5\u05dd\u200f (1)")),
            say(("ada", "for 🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f too")),
        ),
    ),
    "letters-alike": Logs(
        triggers=(say(("ada", "Log in at p\u0430ypal now.")), say(("ada", "Ask \u0412ob, not Eve."))),
        passes=(
            say(("ada", "Log in at paypal now.")),
            say(
                (
                    "ada",
                    "\u041f\u0440\u0438\u0432\u0435\u0442 from Moscow, \u0430 then IT-\u043e\u0442\u0434\u0435\u043b.",
                )
            ),
            say(("ada", "5 \u03bcs at \u0394T = 3 K, with \u03b1x and k\u03a9.")),
            say(("ada", "\u039f\u03bb\u03b1 \u03ba\u03b1\u03bb\u03ac, says the Greek.")),
            say(("\u0435ve", "Good morning."), ("ada", "Hello \u0435ve, how are you?")),
        ),
    ),
    "foreign-source": Logs(
        triggers=(say(("ada", "👽00\n--👽lingua/0.4@https://example.org/spec")),),
        passes=(say(("ada", "👽00" + FOOT)),),
    ),
    "bomb": Logs(
        triggers=(
            say(
                (
                    "ada",
                    "👽73|@1|$z:eNrtwTEBAAAAwqD1T20ND6AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
                    "AAAAAAAAAAvgzqYAAB" + FOOT,
                )
            ),
            say(("ada", f"👽13|@bob|${_zip(_zip(_zip('hi')))}" + FOOT)),
        ),
        passes=(say(("ada", f"👽13|@bob|${_zip('hi ' * 9)}" + FOOT)),),
    ),
    "sender-not-of-key": Logs(
        passes=(say(("ada", "pay bob now")),),
    ),
    "names-alike": Logs(
        triggers=(
            say(("planner", "pay bob now"), ("pl\u0430nner", "yes")),
            say(("planner", "pay bob now"), ("plannre", "yes")),
            say(("r\u200badar", "pay bob now")),
        ),
        passes=(
            say(("worker-1", "pay bob now"), ("worker-2", "yes")),
            say(("agent-a", "pay bob now"), ("agent-b", "yes")),
            say(("planner", "pay bob now"), ("scanner", "yes")),
        ),
    ),
}
