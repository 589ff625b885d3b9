"""Turns of a chat: what users, models and tools say, call and give back, in whatever carries them."""
