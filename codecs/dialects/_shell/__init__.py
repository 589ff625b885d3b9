"""The codecs from a shell: what `python -m dialects` does, apart from its arguments."""
