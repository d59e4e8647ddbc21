"""A stand-in for the identity service: the endpoints that this product calls, and no others (contract 5.2, 5.3, 5.5).

For the sandbox and for tests. It is a process of its own; what it knows is a YAML file, which it reads again whenever
that changes, so that tokens are withdrawn, answers delayed and failures caused by editing it.
"""

from .server import StandInIdentityService

__all__ = ["StandInIdentityService"]
