"""The Django project. Importing it makes `dialects` importable from a checkout as it is from an installed wheel."""

import sys
from pathlib import Path

_CODECS = Path(__file__).resolve().parent.parent / "codecs"
if _CODECS.is_dir() and str(_CODECS) not in sys.path:
    sys.path.insert(0, str(_CODECS))
