"""JSON as the codecs write it: numbers that JSON has not become text, lone surrogates their escapes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rest_framework.renderers import JSONRenderer

from dialects import write_json


class ExactRenderer(JSONRenderer):
    """The plain renderer, and the codecs' own writing for what it refuses.

    A log may hold 1e400 or a number of five thousand digits. Such a message has to be shown like any other.
    """

    def render(
        self, data: Any, accepted_media_type: str | None = None, renderer_context: Mapping[str, Any] | None = None
    ) -> bytes:
        """The data as JSON."""
        try:
            written: bytes = super().render(data, accepted_media_type, renderer_context)
        except ValueError:
            return write_json(self._flatten(data)).encode()
        return written

    def _flatten(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            return {str(name): self._flatten(inner) for name, inner in value.items()}
        if isinstance(value, (list, tuple)):
            return [self._flatten(inner) for inner in value]
        if value is None or isinstance(value, (str, int, float, bool)):
            return value
        return self._flatten(self.encoder_class().default(value))
