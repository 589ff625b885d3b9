"""Tokens: each shape is known in its surroundings, what only looks so is not, and no text takes long."""

from __future__ import annotations

import random
import time
from pathlib import Path

from inspector.tokens import MARKS, SHAPES, alias_of, find_tokens, has_hint, hide_tokens
from tests.each import for_each

_KEY = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC"
# (name of the shape, text, the secret of it)
FOUND = (
    ("private key", f"k: -----BEGIN RSA PRIVATE KEY-----\n{_KEY}\n-----END RSA PRIVATE KEY----- end", _KEY),
    ("private key", f'{{"k": "-----BEGIN OPENSSH PRIVATE KEY-----\\n{_KEY}', _KEY),
    ("JSON web token", "see eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl.", "eyJzdWIiOiIxIn0.c2lnbmF0dXJl"),
    ("cloud access key", "agent-AKIA" + "ABCDEFGHIJKLMNOP", "ABCDEFGHIJKLMNOP"),
    ("cloud access key", "key AIza" + "Sy" + "x1" * 16 + "y", "x1" * 16),
    ("cloud access key", "https://a.example/b?sv=1&sig=" + "aB3%2B" * 8, "aB3%2B" * 8),
    ("code host or chat token", "push with ghp_" + "a1" * 18, "a1" * 18),
    ("code host or chat token", "https://hooks.slack.com/services/T01/B02/" + "z9" * 10, "z9" * 10),
    ("service API key", "sk-proj-" + "a1B2" * 8, "a1B2" * 8),
    ("a bearer token", "Authorization: Bearer abc.def-123456", "abc.def-123456"),
    ("a bearer token", "'authorization': 'Basic dXNlcjpwYXNz'", "dXNlcjpwYXNz"),
    ("a password in an address", "postgres://ada:h!nter@db.example/x", "h!nter"),
    ("a password or key by its name", "DB_PASSWORD=hunter22", "hunter22"),
    ("a password or key by its name", '"client_secret" : "two words here"', "two words here"),
    ("a password or key by its name", '{\\"passphrase\\":\\"two words\\"}', "two words"),
    ("a password or key by its name", "?api_key=abc123def&x=1", "abc123def"),
    # However long.
    ("a password or key by its name", f'{{"client_secret":"{"a1B2" * 100}"}}', "a1B2" * 100),
    ("a password or key by its name", f"password='{'a1B2' * 2_000}'", "a1B2" * 2_000),
    ("a password or key by its name", f'"password": "{"a1B2" * 9_000}", "to": "bob"', "a1B2" * 9_000),
    ("a password or key by its name", "password=" + "a1B2" * 2_000, "a1B2" * 2_000),
    # Cut within its quotes.
    ("a password or key by its name", '{"a":1,"password":"Zq7BsJOrK9z6', "Zq7BsJOrK9z6"),
    ("a password or key by its name", 'password="Zq7BsJ OrK9z6\nand more', "Zq7BsJ OrK9z6"),
    ("a password or key by its name", '{"raw":"password=\\"Zq7BsJOrK9z6', "Zq7BsJOrK9z6"),
    ("a password or key by its name", '{"raw":"password=\\"Zq7BsJOrK9z6","to":"bob"}', "Zq7BsJOrK9z6"),
    # Within JSON within JSON within JSON.
    (
        "a password or key by its name",
        '\\\\\\"password\\\\\\":\\\\\\"Zq7BsJ OrK9z6\\\\\\",\\\\\\"to',
        "Zq7BsJ OrK9z6",
    ),
    # What begins like a word about it.
    ("a password or key by its name", "password=my-Zq7BsJOrK9", "my-Zq7BsJOrK9"),
    ("a password or key by its name", '"secret": "true-Zq7BsJOrK9"', "true-Zq7BsJOrK9"),
    ("a password or key by its name", "curl --client-secret Zq7BsJOrK9 -o x", "Zq7BsJOrK9"),
    ("a password or key by its name", "run --password 'two words 7' now", "two words 7"),
    ("a password or key by its name", "<user>ada</user><password>Zq7BsJOrK9</password>", "Zq7BsJOrK9"),
    ("a cookie", '"Cookie": "sessionid=Zq7BsJOrK9; theme=dark"', "Zq7BsJOrK9"),
)
PASSED = (
    "The password is wrong, ask for another token.",
    "password: required",
    "password=${DB_PASSWORD} api_key=<your key> secret: ********",
    "max_tokens: 4096000, token=42, tokens=abcdef12",
    "AKIAIOSFODNN7" + "EXAMPLE",
    "It wants Bearer authentication/authorisation.",
    "https://example.org:8080/a@b and mailto:ada@example.org",
    "👽09|$j:eyJwcm90b2NvbCI6ImFnZW50LWxpbmd1YSIsInZlcnNpb24iOiIwLjQuMCJ9\n--👽lingua/0.4@agent-lingua",
    "eyJwcm90b2NvbCI6ImFnZW50LWxpbmd1YSJ9.",
    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "task-1234567890-abcdef-risk_assessment",
    "PWD=/home/ada/project secret = compute_secret(a)",
    '{"password":"short","to":"bob","note":"no more than this"}',
    "password=my-secret-password and --password required, <password>required</password>",
    "cookie: two eggs, flour = 200 g",
    "if secret>threshold then password is wrong </b>",
)


@for_each(FOUND)
def test_a_token_is_known_in_its_surroundings(name: str, text: str, secret: str) -> None:
    found = find_tokens(text)
    assert [token.name for token in found] == [name]
    assert secret in text[found[0].start : found[0].end]
    hidden = hide_tokens(text)
    assert secret not in hidden
    assert MARKS in hidden
    assert hide_tokens(hidden) == hidden, "what stands for a token must not be taken for one"
    assert hidden.startswith(text[: found[0].start])


@for_each(PASSED)
def test_what_only_looks_like_one_is_left_alone(text: str) -> None:
    assert find_tokens(text) == []
    assert hide_tokens(text) is text


def test_the_same_token_has_the_same_alias_and_no_other_has() -> None:
    aliases = {alias_of(f"hunter{number}") for number in range(2000)}
    assert len(aliases) == 2000
    assert alias_of("hunter2") in aliases


def test_no_hint_is_left_out() -> None:
    """Whatever a pattern finds, the hints let it be looked for."""
    names = {name for name, _, _ in FOUND}
    assert names == {shape.name for shape in SHAPES}
    for _, text, _ in FOUND:
        assert has_hint(text)
        assert has_hint(text.upper())


_PIECES = (
    *("eyJ", "eyJaaaaaaaaaa.", "-----BEGIN PRIVATE KEY-----", "-----", "password=", 'password="', "Bearer ", "AKIA"),
    *("://", "://a:", "sk-", "SG.", "ghp_", "Authorization: ", "xoxb-", "Q~", "0Q~", "?sig=", "sig=", "api_key_key"),
    *(
        "password='",
        'password=\\"',
        '\\\\\\"password\\\\\\":\\\\\\"',
        "--password ",
        "<password>",
        "secret>aaaaaa</x",
        "cookie: a=",
    ),
    *("secret_access_", "passwordpassword", "pypi-", "\\", '"', "'", " ", "a1", "aaaa", "=", ":", "\n", "@", "-", "•"),
)


def test_time_grows_with_the_text_and_no_faster() -> None:
    """Each piece over and over, and any mixture of them: twice the text takes no more than about twice as long."""
    letters = random.Random(18)
    mixtures = ["".join(letters.choices(_PIECES, k=30)) for _ in range(25)]
    slow = []
    for piece in (*_PIECES, *mixtures):
        short, long = (_take(piece * (size // len(piece))) for size in (10_000, 80_000))
        # Eight times the text; quadratic would be 64 times. What is quick enough either way cannot be measured.
        if long > 0.02 and long > 24 * short:
            slow.append((piece, short, long))
    assert not slow


def _take(text: str) -> float:
    taken = []
    for _ in range(2):
        started = time.process_time()
        find_tokens(text)
        taken.append(time.process_time() - started)
    return min(taken)


def test_every_shape_is_in_the_documentation() -> None:
    page = (Path(__file__).parents[2] / "docs" / "secrets.md").read_text()
    assert [name for name in (shape.name for shape in SHAPES) if f"| {name} |" not in page] == []
