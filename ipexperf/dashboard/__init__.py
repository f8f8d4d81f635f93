"""The dashboard: a history drawn as static pages, which need neither a server nor a network."""
