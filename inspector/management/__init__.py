"""The commands of `manage.py`: doors like the pages, for whoever holds the machine."""
