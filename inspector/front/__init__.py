"""The front: one process that takes requests in whole, however slow they are, and hands them to those that answer."""
