"""The app's registration with Django."""

from django.apps import AppConfig


class PagesConfig(AppConfig):
    """Pages for people; it has no models and nothing imports it."""

    name = "inspector.pages"
