"""A storage, as Django has them: a folder that several hosts share, whose files are packed.

`OBJECT_STORE=inspector_relay.storage.PackedFolder?location=/srv/files` keeps the files of exports and uploads
there. The inspector has a storage save, open, delete and list, and compares what it reads with what it wrote.
"""

from __future__ import annotations

import gzip
from typing import Any

from django.core.files.base import ContentFile, File
from django.core.files.storage import FileSystemStorage


class PackedFolder(FileSystemStorage):
    """Files in a folder, each packed by gzip."""

    def _save(self, name: str, content: File[bytes]) -> str:
        return super()._save(name, ContentFile(gzip.compress(content.read())))

    def _open(self, name: str, mode: str = "rb") -> Any:
        with super()._open(name, mode) as file:
            return ContentFile(gzip.decompress(file.read()))
