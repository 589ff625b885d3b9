"""The product's settings for the harness's own processes: one more app, which makes batches small, or breaks things."""

from inspector.settings import *  # noqa: F403

INSTALLED_APPS = [*INSTALLED_APPS, "bench.crash.variants.VariantConfig"]  # noqa: F405
