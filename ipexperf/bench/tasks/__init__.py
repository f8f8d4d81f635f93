"""One file a task."""
