"""Escrowed keys, sealed at rest. Only its place in the order of imports exists: no key is kept yet."""
