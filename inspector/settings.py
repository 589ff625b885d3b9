"""The settings, all by environment, all with a default that works on a laptop."""
