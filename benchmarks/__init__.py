"""What the API costs, measured beside others (README.md)."""
