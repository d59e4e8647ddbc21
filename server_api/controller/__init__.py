"""Drives every stored server towards its spec, and shows what the cloud holds of it (contract section 7)."""
