"""What a case ran, and whether that is right: both ends, what a worker captures and how two of it are compared."""
