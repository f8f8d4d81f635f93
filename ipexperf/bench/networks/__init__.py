"""Networks of the user's own: what names them, what builds them, and what is wrong with one."""
