"""The commands of the trail."""
