"""What is in the way of a backup or of restoring one."""


class BackupError(Exception):
    """It cannot be done, or was not; the sentence says why and what to do."""
