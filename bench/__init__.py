"""Benchmarks: every speed is a ratio of two things measured side by side in one run."""
