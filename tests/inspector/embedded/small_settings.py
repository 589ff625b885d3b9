"""The product's settings without its apps: for tests of the server alone, which need a database and no table."""

from inspector.settings import DATABASES, SECRET_KEY, USE_TZ

__all__ = ["DATABASES", "INSTALLED_APPS", "SECRET_KEY", "USE_TZ"]

INSTALLED_APPS: list[str] = []
