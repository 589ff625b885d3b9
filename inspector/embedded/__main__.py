"""`python -m inspector.embedded`: what `make run` calls."""

import sys

from .run import main

sys.exit(main())
