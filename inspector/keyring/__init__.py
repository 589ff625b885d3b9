"""Escrowed keys, sealed at rest, and the trace of what was done with them."""
