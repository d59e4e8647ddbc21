"""The Kubernetes adapter: stored objects, credentials, leases and events, behind the ports of ``servers.ports``."""
