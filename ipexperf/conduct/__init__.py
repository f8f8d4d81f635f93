"""The controller's side of a worker: start it, talk to it, time it out, kill its tree, let two take turns."""
