"""Many hosts, one run: groups of rounds are measured by the hosts of a Ray cluster, judged and recorded here.

`hosts` describes hosts and selects some, `agent` starts the process that measures on a host, `worker` is that process,
`host_files` is what it keeps there, `link` talks to it, `remote` is the site of a run, `cluster` is the one file that
knows Ray.
"""
