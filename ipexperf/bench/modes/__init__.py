"""One file a mode."""
