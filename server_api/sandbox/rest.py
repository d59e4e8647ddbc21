"""The REST APIs of the sandbox's OpenStack, as one user of it: what the seed, the demo and the tests talk to."""

from typing import Any

import keystoneauth1.exceptions
import requests
from keystoneauth1.adapter import Adapter
from keystoneauth1.identity.v3 import Password
from keystoneauth1.session import Session

from server_api.sandbox.errors import StepFailed

MICROVERSION = "2.90"
PLACEMENT_MICROVERSION = "1.22"
DOMAIN = "default"
TIMEOUT = 60.0


class OpenStackUser:
    """One user of Keystone's default domain, at work in one project.

    Every answer of an error status is raised as keystoneauth1's exception of that status.
    """

    def __init__(self, auth_url: str, username: str, password: str, project_name: str) -> None:
        transport = requests.Session()
        # the services are on the loopback address, where no proxy finds them
        transport.trust_env = False
        auth = Password(
            auth_url=auth_url,
            username=username,
            password=password,
            project_name=project_name,
            user_domain_id=DOMAIN,
            project_domain_id=DOMAIN,
        )
        self._session = Session(auth=auth, session=transport, timeout=TIMEOUT)
        self.identity = self._adapter("identity")
        self.compute = self._adapter("compute", default_microversion=MICROVERSION)
        self.network = self._adapter("network")
        self.image = self._adapter("image")
        self.placement = self._adapter("placement", default_microversion=PLACEMENT_MICROVERSION)

    @property
    def user_id(self) -> str:
        """Its ID in Keystone."""
        return str(self._session.get_user_id())

    @property
    def project_id(self) -> str:
        """The ID of the project it works in."""
        return str(self._session.get_project_id())

    def may_log_in(self) -> bool:
        """Tell whether Keystone takes the password for the project."""
        try:
            self._session.get_token()
        except keystoneauth1.exceptions.Unauthorized:
            return False
        return True

    def _adapter(self, service_type: str, **options: Any) -> Adapter:
        return Adapter(self._session, service_type=service_type, interface="public", **options)


def found(adapter: Adapter, path: str, collection: str, name: str, **query: str) -> dict[str, Any] | None:
    """Return the one item of `collection` at `path` whose name is exactly `name`, None if there is none.

    Raises StepFailed if there are several: nobody could say which is ours.
    """
    answer = adapter.get(path, params={"name": name, **query}).json()
    items = [dict(item) for item in answer[collection] if item["name"] == name]
    if len(items) > 1:
        raise StepFailed(f"OpenStack has {len(items)} {collection} named {name}: remove the sandbox's directory")
    return items[0] if items else None


def ensured(adapter: Adapter, path: str, kind: str, name: str, **members: Any) -> dict[str, Any]:
    """Return the `kind` of that name at `path`, created with `members` if it is not there."""
    item = found(adapter, path, f"{kind}s", name)
    if item is None:
        item = dict(adapter.post(path, json={kind: {"name": name, **members}}).json()[kind])
    return item
