"""FIPA-ACL and KQML: lists `(inform :sender (agent-identifier :name a@p) :content "x")` of an act and its parameters.

Specification: FIPA SC00070I (the form as text), SC00061G (the parameters), SC00037J (the acts); KQML as Labrou and
Finin proposed it in 1997. The act says which vocabulary is spoken; what both have is FIPA's.

The id of a message is its `reply-with`: there is no other, and by this one an answer cites it in `in-reply-to`. An
inform in a protocol about work, or whose content says that an action is done, is the end of that work. The record
cannot hold a second parameter of a name, which only a note shows, how a text was quoted, and which addresses an agent
had where, if it is named twice. A content that is in a dialect is read in turn, and its messages follow; of any other
the language is not read.
"""

from __future__ import annotations

from .._dialect import Dialect
from .detection import opens, sniff
from .reading import identify, read
from .tables import FIPA, GLOSSARY, KQML, NOTES
from .telling import tell
from .writing import encode

DIALECT = Dialect(
    slug="fipa",
    title="FIPA-ACL",
    summary="Speech acts of classic multi-agent systems, with KQML: an act and its named parameters in brackets.",
    specification="FIPA SC00070I, SC00061G, SC00037J; KQML 1997",
    versions=(FIPA, KQML),
    sniff=sniff,
    identify=identify,
    read=read,
    tell=tell,
    encode=encode,
    opens=opens,
    notes=NOTES,
    glossary=GLOSSARY,
)
