"""v1, deprecated: the surface that clients move away from.

Nothing imports this package; ``application`` looks whether it is there. To delete v1, delete it and ``servers/v1``,
with their tests.
"""
