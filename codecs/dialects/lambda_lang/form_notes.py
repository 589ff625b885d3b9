"""The notes on forms around and beside the statements: the JSON forms, and marks that single releases define."""

from __future__ import annotations

from .._record import NoteKind

BROKEN_JSON = NoteKind(
    code="lambda_lang.broken-json",
    severity="error",
    group="malformed",
    about="A JSON form of the dialect is cut off or is not JSON, so its Lambda text cannot be taken out.",
    cites="v0.9 §7.1",
)
JSON_FORM = NoteKind(
    code="lambda_lang.json-form",
    severity="info",
    group="protocol",
    about="The statement stands inside JSON; the English comes from its Lambda text.",
    cites="v0.9 §7.1",
)
OWN_ENGLISH = NoteKind(
    code="lambda_lang.own-english",
    severity="info",
    group="assumption",
    about="The JSON brings a translation of the sender's own; it is shown and not taken over.",
    cites="v0.9 §7.1",
)
ENVELOPE_VERSION = NoteKind(
    code="lambda_lang.envelope-version",
    severity="notice",
    group="assumption",
    about="The version of a pilot envelope is that of the software that wrote it; it does not select a vocabulary.",
    cites="v0.6 §1.2",
)
ODD_JSON = NoteKind(
    code="lambda_lang.odd-json",
    severity="warning",
    group="protocol",
    about="A JSON form gives a key twice, an unknown type, or a value of the wrong kind.",
    cites="v0.9 §7.1",
)
MODAL = NoteKind(
    code="lambda_lang.modal-letter",
    severity="notice",
    group="assumption",
    about="A letter before a subject is read as must, should, want or may; most of these letters are atoms too.",
    cites="v0.3 §4.2",
)
DEMONSTRATIVE = NoteKind(
    code="lambda_lang.this-or-number",
    severity="notice",
    group="assumption",
    about="A dollar sign is read as “this” where nothing can be counted, and as “the number of” before a word.",
    cites="v0.3 §2.2",
)
PASSIVE = NoteKind(
    code="lambda_lang.passive",
    severity="notice",
    group="assumption",
    about="The mark of the passive, which one release alone defines.",
    cites="v0.3 §4.1",
)
GLOSS = NoteKind(
    code="lambda_lang.glossed",
    severity="info",
    group="assumption",
    about="The sender's gloss in brackets chooses one of an atom's meanings.",
    cites="v0.8 §5.2",
)
GLOSS_OTHER = NoteKind(
    code="lambda_lang.gloss-differs",
    severity="notice",
    group="assumption",
    about="The sender's gloss gives an atom a meaning that the release in use does not have.",
    cites="v0.8 §5.2",
)
DOMAIN_LETTER = NoteKind(
    code="lambda_lang.domain-letter",
    severity="notice",
    group="assumption",
    about="A letter names another domain in another release, and no version is declared.",
    cites="v0.4 §2.2",
)
LONG_ID = NoteKind(
    code="lambda_lang.long-id",
    severity="notice",
    group="protocol",
    about="A message id is longer than 256 characters; it is kept and shown whole.",
    cites="v0.6 §1.2",
)
FORM_NOTES = (
    LONG_ID,
    BROKEN_JSON,
    JSON_FORM,
    OWN_ENGLISH,
    ENVELOPE_VERSION,
    ODD_JSON,
    MODAL,
    DEMONSTRATIVE,
    PASSIVE,
    GLOSS,
    GLOSS_OTHER,
    DOMAIN_LETTER,
)
