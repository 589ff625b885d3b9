"""All views for people, one module a page family."""
