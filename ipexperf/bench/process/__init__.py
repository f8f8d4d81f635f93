"""The worker process: its loop, the fork server, the guard, and what it feels of the machine."""
