"""The controller's side of workers: start, ask, time out and kill them, and watch the machine."""
