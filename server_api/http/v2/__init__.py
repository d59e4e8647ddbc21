"""Version 2 of the API: servers addressed by their own ID."""
