"""The manifest of an export: what the file is, as the page shows it and as JSON beside the file."""

from __future__ import annotations

from typing import Any, Final

from dialects import SHAPE_VERSION

from .lines import write_instant
from .models import Export

# Of the lines and columns. It changes when one of them means something else; a new name alone does not change it.
SCHEMA_VERSION: Final = "1"
SET_RULE: Final = (
    "All messages that were stored at the snapshot (fixed_at), matched the query and were not withdrawn, in order of "
    "time. The English of each is that of the time of writing, before finished_at. "
    "listed = messages + withdrawn since the snapshot + gone (re-read since the snapshot)."
)
FINDINGS_RULE: Final = (
    "One row for each finding that the filters match, as it was at the time of writing, before finished_at. The set "
    "are the messages with such a finding at the snapshot (fixed_at) that were not withdrawn, in order of time. "
    "listed = messages + withdrawn since the snapshot + gone (re-read since the snapshot)."
)
# The same for whoever reads a report.
PRINTED_RULE: Final = (
    "It holds the messages of the snapshot in order of time. Its end counts the messages that were withdrawn or "
    "re-read while it was written."
)
MASK_RULE: Final = (
    "Secrets are masked: each character of one is U+2022. The SHA-256 beside a record is of its exact bytes."
)
EXACT_RULE: Final = (
    "Secrets are included: every record is exact to the character. "
    "The SHA-256 beside it is of its bytes as they were received."
)
CELL_RULE: Final = (
    "A cell that a spreadsheet would read as a formula begins with an apostrophe, which is not part of the record."
)
CHANGED_RULE: Final = (
    "Each record is compared with its entry in the ledger when it is written. One that is not what was entered is "
    "marked as changed and has no SHA-256. A record may have no entry for some seconds after it came."
)
# Of the messages with a secret.
MAX_COUNTED: Final = 10_000
OPENED_RULE: Final = "Sealed messages stay sealed: text decrypted by the keyring is in no export."

_FILTERED: Final = (Export.Subject.CONVERSATIONS, Export.Subject.FINDINGS)


def say_secrets(count: int | None) -> str:
    """How many messages of an export hold a secret that a rule found, in words; None is a number that is not known."""
    if count is None:
        return "not counted"
    if not count:
        return "none found"
    if count > MAX_COUNTED:
        return f"found in {MAX_COUNTED:,}+ messages"
    return f"found in {count:,} {'message' if count == 1 else 'messages'}"


def make_manifest(export: Export) -> dict[str, Any]:
    """The manifest as JSON types; what is not known yet is None."""
    return {
        "export": str(export.pk),
        "workspace": export.workspace.slug,
        "asked_by": export.asked_by,
        "asked_at": write_instant(export.asked_at),
        "subject": export.subject,
        "query": export.query if export.subject == Export.Subject.QUERY else None,
        "conversation": str(export.conversation_id) if export.conversation_id else None,
        "sample": str(export.sample_id) if export.sample_id else None,
        "filters": export.filters if export.subject in _FILTERED else None,
        "time_zone": export.zone,
        "form": export.form,
        "schema_version": SCHEMA_VERSION,
        "record_version": SHAPE_VERSION,
        "decoder_version": export.decoder or None,
        "is_masked": export.is_masked,
        "include_secrets": not export.is_masked,
        "state": export.state,
        "fixed_at": write_instant(export.fixed_at) if export.fixed_at else None,
        "finished_at": write_instant(export.finished_at) if export.finished_at else None,
        "expires_at": write_instant(export.expires_at) if export.expires_at else None,
        "listed": export.listed if not export.is_under_way else None,
        "messages": export.messages,
        "rows": export.rows,
        "masked_messages": export.masked,
        "changed_messages": export.changed,
        "withdrawn": export.withdrawn,
        "gone": export.gone,
        "file_name": export.file_name,
        "size_bytes": export.size_bytes,
        "unpacked_bytes": export.unpacked_bytes,
        "sha256": bytes(export.sha256).hex() if export.sha256 else None,
        "about": {
            "set": FINDINGS_RULE if export.subject == Export.Subject.FINDINGS else SET_RULE,
            "secrets": MASK_RULE if export.is_masked else EXACT_RULE,
            **({"cells": CELL_RULE} if export.form == Export.Form.CSV else {}),
            "sealed": OPENED_RULE,
            "changed": CHANGED_RULE,
        },
    }
