"""The processes of ours in a sandbox: embedded Kubernetes API, API, controller, and maybe an identity service."""

import os
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from server_api.sandbox import kubernetes as embedded
from server_api.sandbox.errors import StepFailed
from server_api.sandbox.layout import REPOSITORY, Layout, read_json, write_json
from server_api.sandbox.processes import LOOPBACK, Processes, free_port
from server_api.settings import PREFIX

KUBERNETES = "kubernetes"
IDENTITY = "identity"
API = "api"
CONTROLLER = "controller"
# where the first sandbox of a machine is found; a second one takes what is free
PREFERRED_PORTS = {KUBERNETES: 6443, API: 6080, CONTROLLER: 6081, IDENTITY: 6082}
NAMESPACE = "unikorn-region"


@dataclass(frozen=True)
class Choices:
    """What a start decided, kept for those who come later: ports, and the client configuration of Kubernetes.

    `kubeconfig` is None for the embedded API; else it is what $KUBECONFIG was, maybe several files. With
    `identity_service`, callers come from the stand-in and not from the file of tokens.
    """

    ports: Mapping[str, int]
    kubeconfig: str | None = None
    identity_service: bool = False

    @classmethod
    def remembered(cls, layout: Layout) -> "Choices | None":
        """Return what the last start decided, None if there was none."""
        content = read_json(layout.choices)
        if not content:
            return None
        return cls(content["ports"], content["kubeconfig"], content.get("identityService", False))

    def remember(self, layout: Layout) -> None:
        """Keep this for `remembered`, in any later command."""
        content = {
            "ports": dict(self.ports),
            "kubeconfig": self.kubeconfig,
            "identityService": self.identity_service,
        }
        write_json(layout.choices, content)

    @property
    def embedded(self) -> bool:
        """Whether the sandbox runs its own Kubernetes API."""
        return self.kubeconfig is None

    @property
    def names(self) -> tuple[str, ...]:
        """The processes that make up the sandbox, in the order of their start, without OpenStack's."""
        optional = {KUBERNETES: self.embedded, IDENTITY: self.identity_service}
        return (*(name for name, wanted in optional.items() if wanted), API, CONTROLLER)

    def url(self, name: str) -> str:
        """Return the root of a process, without a trailing slash."""
        return f"http://{LOOPBACK}:{self.ports[name]}"

    def ready_url(self, name: str) -> str:
        """Return what answers with success once the process can be used."""
        return f"{self.url(name)}/readyz"


def choose(
    layout: Layout,
    processes: Processes,
    kubeconfig: str | None,
    api_port: int | None,
    *,
    identity_service: bool = False,
) -> Choices:
    """Return the remembered ports where they are in use by us or free, and free ones for the rest.

    Raises StepFailed if `api_port` was asked for and cannot be had, or if what runs here uses another Kubernetes or
    has its callers from elsewhere.
    """
    before = Choices.remembered(layout)
    running = [name for name in PREFERRED_PORTS if processes.alive(name)]
    if before and running and before.kubeconfig != kubeconfig:
        raise StepFailed(f"{', '.join(running)} runs with another Kubernetes: run server-api sandbox down first")
    if before and running and before.identity_service != identity_service:
        raise StepFailed(f"{', '.join(running)} runs with callers from elsewhere: run server-api sandbox down first")
    ports: dict[str, int] = {}
    for name, preferred in PREFERRED_PORTS.items():
        if name == IDENTITY and not identity_service:
            continue
        known = before.ports.get(name, preferred) if before else preferred
        if processes.alive(name):
            ports[name] = known
        else:
            wanted = api_port if name == API and api_port else known
            ports[name] = _other_than(ports.values(), free_port(wanted))
    if api_port and ports[API] != api_port:
        reason = "the API runs on another one already" if processes.alive(API) else "it is taken"
        raise StepFailed(f"port {api_port} cannot be had: {reason}")
    return Choices(ports, kubeconfig, identity_service)


def command(name: str, layout: Layout, choices: Choices) -> list[str | Path]:
    """Return the command line of a process."""
    if name == KUBERNETES:
        return [
            *(sys.executable, "-m", "server_api.sandbox.kubernetes"),
            *("--database", layout.kubernetes_database),
            *("--port", str(choices.ports[KUBERNETES])),
        ]
    if name == IDENTITY:
        return [
            *(sys.executable, "-m", "server_api.sandbox.identity_service"),
            *("--known", layout.identity),
            *("--port", str(choices.ports[IDENTITY])),
        ]
    if name == API:
        configuration = REPOSITORY / "deploy" / "gunicorn.conf.py"
        if not configuration.exists():
            raise StepFailed(f"{configuration} is missing: the sandbox runs from a checkout of the repository")
        return [sys.executable, "-m", "gunicorn", "-c", configuration, "wsgi:app"]
    return own_command("controller")


def own_command(*words: str) -> list[str | Path]:
    """Return the command line of one of our own commands, which does not need the console script."""
    return [sys.executable, "-m", "server_api.cli", *words]


def environment(layout: Layout, choices: Choices) -> dict[str, str]:
    """Return the environment of every process of ours. Settings in our own environment are passed on."""
    own = {
        "NAMESPACE": NAMESPACE,
        "TOKENS_FILE": str(layout.tokens),
        "BIND": f"{LOOPBACK}:{choices.ports[API]}",
        "CONTROLLER_BIND": f"{LOOPBACK}:{choices.ports[CONTROLLER]}",
        # a view that forgot its authorization check must not go unnoticed here
        "STRICT_AUTHORIZATION": os.environ.get(f"{PREFIX}STRICT_AUTHORIZATION", "true"),
        # nobody balances load here: nothing is gained by refusing to serve before the end
        "DRAIN_SECONDS": os.environ.get(f"{PREFIX}DRAIN_SECONDS", "0.5"),
        # on this machine everybody may stand in the place of a proxy that terminates TLS
        "TRUSTED_PROXIES": os.environ.get(f"{PREFIX}TRUSTED_PROXIES", LOOPBACK),
        "KUBECONFIG": "",
    }
    if choices.identity_service:
        own |= {"IDENTITY_SOURCE": "identity-service", "IDENTITY_URL": choices.url(IDENTITY)}
    return {
        **os.environ,
        **{f"{PREFIX}{name}": value for name, value in own.items()},
        "KUBECONFIG": kubeconfig(layout, choices),
        "NO_PROXY": "*",
        "no_proxy": "*",
    }


def kubeconfig(layout: Layout, choices: Choices) -> str:
    """Return the value of $KUBECONFIG for this sandbox."""
    return choices.kubeconfig or str(layout.kubeconfig)


def write_kubeconfig(layout: Layout, choices: Choices) -> None:
    """Write the client configuration of the embedded Kubernetes API.

    It holds no token: kubectl sends none over plain HTTP, and so the API, on a loopback port, asks for none.
    """
    embedded.write_kubeconfig(layout.kubeconfig, choices.url(KUBERNETES), namespace=NAMESPACE)


def _other_than(taken: Collection[int], port: int) -> int:
    # what was chosen a moment ago is not listened on yet, and looks free
    while port in taken:
        port = free_port()
    return port
