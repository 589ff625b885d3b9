"""The crash harness: kill -9 of real processes under load, and a count of what became of every accepted record."""
