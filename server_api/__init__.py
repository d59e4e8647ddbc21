"""server-api: the life of compute servers in a cloud region, as a service."""

__version__ = "0.1.0"
