"""Every note that reading or telling Λ Lambda can make; those on forms are of the JSON forms, and of marks that single
releases define.
"""

from __future__ import annotations

from .._record import NoteKind

UNCLOSED = NoteKind(
    code="lambda_lang.unclosed",
    severity="error",
    group="malformed",
    about="A quote or a bracket never closes, so the record cannot be cut into statements.",
    cites="v0.6 §1.1",
)
EMPTY = NoteKind(
    code="lambda_lang.empty",
    severity="error",
    group="malformed",
    about="There is no statement in the text.",
    cites="v0.6 §1.1",
)
NOTHING_KNOWN = NoteKind(
    code="lambda_lang.nothing-known",
    severity="error",
    group="malformed",
    about="No type, header or protocol form opens the text, and nothing in it is of this dialect.",
    cites="v0.6 §1.1",
)
BROKEN_HEADER = NoteKind(
    code="lambda_lang.broken-header",
    severity="warning",
    group="protocol",
    about="What opens as a header is none: it sets no version, no id and no domain.",
    cites="v0.6 §1.2",
)
NO_TYPE = NoteKind(
    code="lambda_lang.no-type",
    severity="warning",
    group="protocol",
    about="A statement has no type symbol; it is read as a plain statement.",
    cites="v0.6 §1.1",
)
EMPTY_BODY = NoteKind(
    code="lambda_lang.empty-body",
    severity="warning",
    group="protocol",
    about="A type symbol stands alone: the body is missing.",
    cites="v0.6 §1.1",
)
STRAY_BRACKET = NoteKind(
    code="lambda_lang.stray-bracket",
    severity="warning",
    group="protocol",
    about="A closing bracket has no opening one.",
    cites="v0.6 §5",
)
UNKNOWN_ERROR = NoteKind(
    code="lambda_lang.unknown-error",
    severity="warning",
    group="undecoded",
    about="An error code that no release defines.",
    cites="v0.6 §3.1",
)
UNKNOWN_DOMAIN = NoteKind(
    code="lambda_lang.unknown-domain",
    severity="warning",
    group="undecoded",
    about="A namespace or domain that the release in use does not have.",
    cites="v0.7",
)
BAD_CHUNK = NoteKind(
    code="lambda_lang.bad-chunk",
    severity="warning",
    group="sequence",
    about="The number of a chunk lies outside the count it states.",
    cites="v0.9",
)
TOO_DEEP = NoteKind(
    code="lambda_lang.too-deep",
    severity="warning",
    group="protocol",
    about="Brackets are nested deeper than the ten levels allowed; deeper content is shown as text.",
    cites="v0.9",
)
TOO_LONG = NoteKind(
    code="lambda_lang.too-long",
    severity="warning",
    group="protocol",
    about="The record is larger than the 10 KB that the specification allows.",
    cites="v0.9",
)
REPEATED_KEY = NoteKind(
    code="lambda_lang.repeated-key",
    severity="warning",
    group="protocol",
    about="A block gives a key twice; both values are shown.",
    cites="v0.6 §5.1",
)
UNREAD = NoteKind(
    code="lambda_lang.unread-symbol",
    severity="warning",
    group="undecoded",
    about="Characters that the dialect gives no meaning; they are shown as they are.",
    cites="v0.5",
)
UNKNOWN_WORD = NoteKind(
    code="lambda_lang.unknown-word",
    severity="notice",
    group="undecoded",
    about="A word that is no atom of the vocabulary in use; it is shown as it is.",
    cites="v0.6 §3.1",
)
AMBIGUOUS_WORD = NoteKind(
    code="lambda_lang.ambiguous-word",
    severity="notice",
    group="undecoded",
    about="A word that could be divided in more than one way; it is not guessed.",
    cites="v0.5",
)
DIVIDED_WORD = NoteKind(
    code="lambda_lang.divided-word",
    severity="notice",
    group="assumption",
    about="A word read as an atom with a letter for tense or aspect.",
    cites="v0.3",
)
MINUS = NoteKind(
    code="lambda_lang.minus",
    severity="notice",
    group="assumption",
    about="A minus is “not” before a word and “less or negative” after one: the sender may mean the other.",
    cites="v0.1",
)
WORD_BY_WORD = NoteKind(
    code="lambda_lang.word-by-word",
    severity="info",
    group="assumption",
    about="Words stand side by side and nothing written joins them; they are told one by one, without made-up grammar.",
    cites="v0.5 §3",
)
THEREFORE = NoteKind(
    code="lambda_lang.arrow",
    severity="notice",
    group="assumption",
    about="An arrow is “therefore” or “because” between clauses, “to” or “from” between things; it could be the other.",
    cites="v0.1",
)
TWO_MEANINGS = NoteKind(
    code="lambda_lang.two-meanings",
    severity="info",
    group="assumption",
    about="The vocabulary gives an atom two meanings side by side, and the message does not choose.",
    cites="v0.7",
)
OTHER_DOMAIN = NoteKind(
    code="lambda_lang.other-domain",
    severity="info",
    group="assumption",
    about="An atom, or the letter before it, belonged to another domain in other releases.",
    cites="v1.6",
)
MARKED = NoteKind(
    code="lambda_lang.marker-unmet",
    severity="notice",
    group="assumption",
    about="A marker asks for a use of a word that no meaning in force has; a likely meaning is shown beside it.",
    cites="v0.8",
)
CHECKSUM = NoteKind(
    code="lambda_lang.checksum-differs",
    severity="notice",
    group="protocol",
    about="The checksum differs from our count of the body's characters; its unit is not defined.",
    cites="v0.6 §3.2",
)
NEWER = NoteKind(
    code="lambda_lang.newer-version",
    severity="notice",
    group="assumption",
    about="The declared version is newer than every vocabulary known; the newest known one is used.",
    cites="v0.6 §1.2",
)
REDEFINES = NoteKind(
    code="lambda_lang.redefines-atom",
    severity="notice",
    group="assumption",
    about="A sender gives an atom of the vocabulary another meaning.",
    cites="v0.4",
)
DEFINED_OTHERWISE = NoteKind(
    code="lambda_lang.defined-otherwise",
    severity="warning",
    group="assumption",
    about="A word is defined otherwise than a sender defined it before.",
    cites="v0.4",
)
DEFINED = NoteKind(
    code="lambda_lang.sender-defined",
    severity="info",
    group="assumption",
    about="A word has the meaning that a sender gave it, not the vocabulary's.",
    cites="v0.4",
)
DIFFERS = NoteKind(
    code="lambda_lang.meaning-differs",
    severity="info",
    group="assumption",
    about="An atom meant something else in other releases.",
    cites="v0.6 §1.2",
)
NOT_FETCHED = NoteKind(
    code="lambda_lang.not-fetched",
    severity="info",
    group="security",
    about="An address in the message is shown and never fetched.",
    cites="v0.4",
)
NOT_VERIFIED = NoteKind(
    code="lambda_lang.not-verified",
    severity="info",
    group="security",
    about="A signature, an authentication or a trust level is carried; nothing here verifies it.",
    cites="v0.6 §7",
)
SEALED = NoteKind(
    code="lambda_lang.sealed",
    severity="info",
    group="security",
    about="The content is encrypted and was not opened.",
    cites="v0.6 §7.2",
)

NOTES = (
    UNCLOSED,
    EMPTY,
    NOTHING_KNOWN,
    BROKEN_HEADER,
    NO_TYPE,
    EMPTY_BODY,
    STRAY_BRACKET,
    UNKNOWN_ERROR,
    UNKNOWN_DOMAIN,
    BAD_CHUNK,
    TOO_DEEP,
    TOO_LONG,
    REPEATED_KEY,
    UNREAD,
    UNKNOWN_WORD,
    AMBIGUOUS_WORD,
    DIVIDED_WORD,
    MINUS,
    WORD_BY_WORD,
    THEREFORE,
    TWO_MEANINGS,
    OTHER_DOMAIN,
    MARKED,
    CHECKSUM,
    NEWER,
    REDEFINES,
    DEFINED_OTHERWISE,
    DEFINED,
    DIFFERS,
    NOT_FETCHED,
    NOT_VERIFIED,
    SEALED,
)


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
