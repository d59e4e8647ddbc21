"""What the five services are called, and where each is found."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from server_api.sandbox.processes import LOOPBACK

# as the catalogue names its region, and every user's password: it opens nothing but loopback ports of this
# machine
REGION = "RegionOne"
PASSWORD = "sandbox"


@dataclass(frozen=True)
class Service:
    """`type` and `path` are those of the catalogue; `config` is the name of its configuration file."""

    name: str
    type: str
    path: str
    config: str

    def url(self, port: int) -> str:
        """Return the root of the service, without a trailing slash."""
        return f"http://{LOOPBACK}:{port}"

    def endpoint(self, port: int) -> str:
        """Return the URL that the catalogue gives."""
        return self.url(port) + self.path

    def config_file(self, state: Path) -> Path:
        """Return where its configuration file lies."""
        return state / "etc" / self.name / self.config


KEYSTONE = Service("keystone", "identity", "/v3", "keystone.conf")
GLANCE = Service("glance", "image", "", "glance-api.conf")
PLACEMENT = Service("placement", "placement", "", "placement.conf")
NEUTRON = Service("neutron", "network", "", "neutron.conf")
NOVA = Service("nova", "compute", "/v2.1", "nova.conf")

# in the order of starting: Nova takes longest, and waits for Keystone and Placement by itself
SERVICES = (KEYSTONE, NOVA, NEUTRON, PLACEMENT, GLANCE)

DATABASES = ("keystone", "glance", "placement", "neutron", "nova_api", "nova_cell0", "nova_cell1")

# service name -> port
Ports = Mapping[str, int]


def database_file(state: Path, name: str) -> Path:
    """Return where the database `name` of DATABASES lies."""
    return state / "db" / f"{name}.sqlite"


def database_url(state: Path, name: str) -> str:
    """Return the SQLAlchemy URL; a writer waits up to a minute for the writer of another process."""
    return f"sqlite:///{database_file(state, name)}?timeout=60"
