"""The API's manual in a browser: Swagger UI over the description, from files of our own, with no script in the page."""

from __future__ import annotations

from django.views.generic import TemplateView


class ManualView(TemplateView):
    """The page. It needs no key; what it sends does, and the key stays in the browser's page."""

    template_name = "api/manual.html"
