"""One file a device."""
