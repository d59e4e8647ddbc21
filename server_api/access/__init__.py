"""Who calls and what they may do: principals, their access control lists, and where both come from."""
