"""One file per mode."""
