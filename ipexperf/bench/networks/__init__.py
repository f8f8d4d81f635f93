"""Networks of the user's own: parse their targets, build them, train them, and tell what is wrong with one."""
