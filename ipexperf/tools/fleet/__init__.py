"""One command on many hosts: each runs it in its own checkout, under its own lease, and its history is merged here.

`hosts` describes hosts and chooses some, `host_side` is what happens on a host, `local` and `cluster` reach it there
(`cluster` is the one file that knows Ray), `runs` is the caller's side, `share` deals the tests out over equal hosts.
"""
