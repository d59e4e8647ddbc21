"""An embedded Kubernetes API: small, honest, over SQLite. What it does not implement answers an error.

`docs/embedded-kubernetes.md` lists what it implements. Run it as a process with
`python -m server_api.sandbox.kubernetes`, or inside a test with `EmbeddedKubernetes`.
"""

from .server import EmbeddedKubernetes, write_kubeconfig

__all__ = ["EmbeddedKubernetes", "write_kubeconfig"]
