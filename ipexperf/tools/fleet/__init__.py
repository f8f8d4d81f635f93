"""One command on many hosts: each runs it in its own checkout, under its own lease, and its history is merged here.

`labels` describes a host, `hosts` chooses some, `host_side` is what happens on one, `cluster` reaches it there (the one
file that knows Ray), `runs` is the caller's side, `share` deals the tests out over equal hosts.
"""
