"""The containers, run by an engine: `make compose-test`."""
