"""Everything the service needs, on one machine: for development, tests and a first look."""
