"""Schemas of what goes over the wire, one module per noun, used to validate requests and to document responses."""
