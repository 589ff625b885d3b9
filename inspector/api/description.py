"""The API's manual in a browser, and its description (OpenAPI 3.1), with the shapes of the normalised record in it."""

from __future__ import annotations

from typing import Any

from django.views.generic import TemplateView
from drf_spectacular.generators import SchemaGenerator

from .shapes import list_components


class DescriptionGenerator(SchemaGenerator):
    """The stock generator, to which the codecs' own values are known as components."""

    def parse(self, *args: Any, **names: Any) -> Any:
        """The paths; the operations may name any of the components."""
        for component in list_components():
            self.registry.register_on_missing(component)
        return super().parse(*args, **names)  # type: ignore[no-untyped-call]  # it has no types


class ManualView(TemplateView):
    """The page. It needs no key; what it sends does, and the key stays in the browser's page."""

    template_name = "api/manual.html"
