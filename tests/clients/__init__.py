"""Tests of the clients that agents use."""
