"""The form that takes a key: pasted or as a file. What was pasted is never written back into a page."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final

from django import forms
from django.utils import timezone

from inspector.keyring.models import EscrowedKey
from inspector.keyring.services import MAX_LABEL_LENGTH
from inspector.keyring.spellings import MAX_BYTES, MAX_SESSION_LENGTH, SpellingError, read_keys

from ..forms import PLAIN, PageForm

_MAX_AHEAD: Final = timedelta(days=50 * 365)


class SecretTextarea(forms.Textarea):
    """A field that is always drawn empty."""

    def format_value(self, value: Any) -> str:
        """Nothing, whatever was sent."""
        return ""


class EscrowForm(PageForm):
    """A key to be kept."""

    label = forms.CharField(
        required=False,
        max_length=MAX_LABEL_LENGTH,
        widget=forms.TextInput(attrs=PLAIN),
        help_text="Owner and purpose of the key. A file may have its own label.",
    )
    key = forms.CharField(
        required=False,
        max_length=MAX_BYTES,
        strip=False,
        widget=SecretTextarea(attrs={**PLAIN, "rows": 3}),
        help_text="Base64, hex, PEM, a JWK, or the JSON that the codecs take.",
    )
    file = forms.FileField(required=False, label="Or a key file", allow_empty_file=True)
    kind = forms.ChoiceField(
        label="Type",
        choices=EscrowedKey.Kind.choices,
        help_text="PEM, JWK and JSON name their type.",
    )
    written = forms.ChoiceField(
        label="Written as",
        required=False,
        choices=[
            ("any", "recognised by its form"),
            ("base64", "Base64"),
            ("hex", "hex"),
            ("text", "plain text (pre-shared keys)"),
        ],
    )
    peer = forms.CharField(
        required=False,
        max_length=1000,
        label="The other side’s public key",
        widget=forms.TextInput(attrs=PLAIN),
        help_text="For an X25519 key. If empty, public keys from the log’s handshakes are tried.",
    )
    session = forms.CharField(
        required=False,
        max_length=MAX_SESSION_LENGTH,
        widget=forms.TextInput(attrs=PLAIN),
        help_text="Left empty, it is tried on every session.",
    )

    expires = forms.DateField(
        required=False,
        label="Expires",
        widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
        help_text="At the end of that day, UTC, the key and what it opened are removed.",
    )

    def clean(self) -> dict[str, Any]:
        """The keys that were given, as `keys` of the cleaned data."""
        said = super().clean() or {}
        if self.errors:
            return said
        file, text = said.get("file"), said.get("key") or ""
        if file is not None and text.strip():
            self.add_error("key", "Either paste a key or choose a file, not both.")
            return said
        try:
            data = file.read(MAX_BYTES + 1) if file is not None else text.encode("utf-8", "surrogatepass")
            said["keys"] = read_keys(
                data,
                kind=said["kind"],
                written=said.get("written") or "any",
                peer=said.get("peer") or "",
                session=said.get("session") or "",
            )
        except SpellingError as error:
            self.add_error("file" if file is not None else "key", str(error))
        said.pop("key", None)
        return said

    def clean_expires(self) -> date | None:
        """A day that is not over, within the years that can be counted on."""
        day: date | None = self.cleaned_data["expires"]
        today = timezone.now().astimezone(UTC).date()
        if day is not None and not today <= day <= today + _MAX_AHEAD:
            raise forms.ValidationError("Name a day from today on, within fifty years.")
        return day

    def read(self) -> dict[str, Any]:
        """What `escrow_keys` takes, of a valid form."""
        said = self.cleaned_data
        day = said["expires"]
        end = datetime.combine(day + timedelta(days=1), time(), UTC) if day else None
        return {"keys": said["keys"], "label": said["label"], "expires_at": end}
