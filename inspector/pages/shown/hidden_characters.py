"""Characters that a reader cannot see, as the pages ask for them; what they are is known to `threads`."""

from __future__ import annotations

from inspector.threads.rendering.hidden_characters import HIDDEN as HIDDEN
from inspector.threads.rendering.hidden_characters import HIDDEN_BLOCK as HIDDEN_BLOCK
from inspector.threads.rendering.hidden_characters import HIDDEN_RUN as HIDDEN_RUN
from inspector.threads.rendering.hidden_characters import code_of as code_of
from inspector.threads.rendering.hidden_characters import is_hidden as is_hidden
from inspector.threads.rendering.hidden_characters import name_of as name_of
from inspector.threads.rendering.hidden_characters import spell_hidden as spell_hidden
