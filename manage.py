#!/usr/bin/env python
"""The command line of the Django project."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "codecs"))

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "inspector.settings")
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)
