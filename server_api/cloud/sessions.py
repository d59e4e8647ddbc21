"""Authenticated HTTP sessions, one per credential, and the clients that talk through them (contract 6.1).

How long a secret is kept: ``OpenStackCloud`` reads the credential anew for every tenancy it hands out, for every
refresh of a catalogue and for every look-up of external networks. A session is found by a digest of the credential,
so a changed secret, user, project or endpoint gets a new session at the next use. A session, and with it the password
it was made with, is forgotten after a time that is a setting, or earlier when it is the least recently used of many.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import glanceclient.v2.client
import keystoneauth1.access
import keystoneauth1.adapter
import keystoneauth1.session
import novaclient.client
import requests
import requests.adapters
from cachetools import TTLCache
from keystoneauth1.exceptions import BadGateway, ConnectTimeout, HttpError
from keystoneauth1.identity import v3
from openstack.connection import Connection

from server_api import deadline, trace
from server_api.cloud.errors import translated
from server_api.servers.ports import PortError
from server_api.settings import Settings

if TYPE_CHECKING:
    from openstack.network.v2._proxy import Proxy as NetworkProxy

NOVA_MICROVERSION = "2.90"
SESSIONS_KEPT = 256
CONNECTIONS_PER_HOST = 32

CallObserver = Callable[[str, str, str, float], None]
"""Told of every request: the service, the method, the class of its outcome, and how many seconds it took."""

_SERVICES = {
    "baremetal": "ironic",
    "compute": "nova",
    "image": "glance",
    "network": "neutron",
    "placement": "placement",
}


@dataclass(frozen=True, slots=True)
class CloudCredential:
    """A Keystone user on one project. ``endpoint`` is Keystone's URL, with or without ``/v3``."""

    endpoint: str
    user_id: str
    password: str = field(repr=False)
    project_id: str

    @property
    def auth_url(self) -> str:
        """Keystone's version 3 URL."""
        url = self.endpoint.rstrip("/")
        return url if url.endswith("/v3") else f"{url}/v3"

    @property
    def digest(self) -> str:
        """What a session is found by, so that no pool is keyed by a password."""
        parts = json.dumps([self.auth_url, self.user_id, self.project_id, self.password])
        return hashlib.sha256(parts.encode()).hexdigest()


class CloudTransport(requests.adapters.HTTPAdapter):
    """Sends every request, log-ins included, within the deadline and with the trace of the work in hand."""

    def __init__(self, connect_timeout: float, read_timeout: float) -> None:
        super().__init__(pool_connections=CONNECTIONS_PER_HOST, pool_maxsize=CONNECTIONS_PER_HOST)
        self._connect_timeout = connect_timeout
        self._read_timeout = read_timeout

    def send(self, request: requests.PreparedRequest, *args: Any, **kwargs: Any) -> requests.Response:
        """Send it. Raises TimeoutError when the deadline has passed."""
        # Taken here and not where the call began: a log-in in between has used up some of it.
        kwargs["timeout"] = (deadline.remaining(self._connect_timeout), deadline.remaining(self._read_timeout))
        headers = {"traceparent": trace.traceparent(), "X-OpenStack-Request-ID": trace.openstack_request_id()}
        request.headers.update({name: value for name, value in headers.items() if value})
        return super().send(request, *args, **kwargs)


def unobserved(service: str, method: str, outcome: str, seconds: float) -> None:
    """Do nothing: the ``CallObserver`` of who does not count."""


class CloudSession(keystoneauth1.session.Session):
    """A keystoneauth session that raises on every failed answer, logs nothing and follows no redirect."""

    def __init__(self, observe_call: CallObserver = unobserved, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._observe_call = observe_call

    def request(self, url: str, method: str, **kwargs: Any) -> requests.Response:  # type: ignore[override]
        """Send a request. Raises keystoneauth's HttpError for every status from 300 that is no list of choices."""
        # keystoneauth logs bodies at DEBUG, and with them user data.
        kwargs["log"] = False
        # novaclient loses Retry-After, glanceclient fails on an error body of another shape: neither gets to see one.
        kwargs["raise_exc"] = True
        response = self._observed(url, method, kwargs)
        if response.is_redirect:
            # Following it would send the token to whatever host the answer names.
            raise BadGateway(message="redirects are not followed", url=url, method=method)
        return response

    def _observed(self, url: str, method: str, kwargs: dict[str, Any]) -> requests.Response:
        began = time.monotonic()
        outcome: str | None = "failed"
        try:
            response = super().request(url, method, **kwargs)
            outcome = _status_class(response.status_code)
            return response
        except PortError:
            # The log-in before it failed, which counted itself: this request was never sent.
            outcome = None
            raise
        except HttpError as error:
            outcome = _status_class(error.http_status)
            raise
        except (ConnectTimeout, TimeoutError):
            outcome = "timeout"
            raise
        finally:
            if outcome is not None:
                self._observe_call(_service(url, kwargs), method, outcome, time.monotonic() - began)


def _status_class(status: int) -> str:
    return f"{status // 100}xx"


def _service(url: str, kwargs: dict[str, Any]) -> str:
    """Name the service a request goes to. Log-ins and the discovery of versions name none themselves."""
    service_type = (kwargs.get("endpoint_filter") or {}).get("service_type")
    if service_type is None:
        return "keystone" if url.endswith("/auth/tokens") else "discovery"
    return _SERVICES.get(service_type, "other")


class PasswordLogin(v3.Password):
    """A log-in whose token is renewed once, however many threads learn at the same time that it is dead.

    keystoneauth lets a late 401 throw away the token that another thread has fetched since, and gives up in a thread
    that finds the token thrown away already (B-80).
    """

    def __init__(self, credential: CloudCredential) -> None:
        super().__init__(
            auth_url=credential.auth_url,
            user_id=credential.user_id,
            password=credential.password,
            project_id=credential.project_id,
        )
        self._handed_out = threading.local()

    def get_auth_ref(self, session: keystoneauth1.session.Session, **kwargs: Any) -> keystoneauth1.access.AccessInfo:  # type: ignore[override]
        """Log in. Raises PortError of keystone."""
        with translated("keystone"):
            return super().get_auth_ref(session, **kwargs)

    def get_token(self, session: keystoneauth1.session.Session) -> str | None:
        """Return a token that is valid as far as is known, and remember which one this thread was given."""
        token = super().get_token(session)
        self._handed_out.token = token
        return token

    def invalidate(self) -> bool:
        """Forget the token if it still is the one this thread failed with; another try makes sense either way."""
        with self._lock:
            if self.auth_ref and self.auth_ref.auth_token == getattr(self._handed_out, "token", None):
                self.auth_ref = None
        return True


class CloudClients:
    """The clients of one credential, made when first used: what one of them discovers is kept for its lifetime."""

    def __init__(
        self,
        credential: CloudCredential,
        transport: CloudTransport,
        cloud_region: str,
        observe_call: CallObserver = unobserved,
    ) -> None:
        self.project_id = credential.project_id
        self._cloud_region = cloud_region or None
        connections = requests.Session()
        connections.mount("http://", transport)
        connections.mount("https://", transport)
        self.session = CloudSession(
            observe_call,
            auth=PasswordLogin(credential),
            session=connections,
            redirect=False,
            app_name="server-api",
        )

    @cached_property
    def nova(self) -> Any:
        """Nova's client, at the microversion of contract 6.1."""
        client = novaclient.client.Client(
            NOVA_MICROVERSION, session=self.session, region_name=self._cloud_region, endpoint_type="public"
        )
        for manager in (client.servers, client.flavors):
            # It writes every name and ID it sees below ~/.novaclient, for a shell's sake, under a lock of the process.
            manager.completion_cache = _no_completion_cache
        return client

    @cached_property
    def glance(self) -> Any:
        """Glance's client."""
        return glanceclient.v2.client.Client(session=self.session, region_name=self._cloud_region, interface="public")

    def adapter(self, service_type: str, microversion: str) -> keystoneauth1.adapter.Adapter:
        """Return plain requests to a service that has no client here, at a microversion sent with each of them."""
        return keystoneauth1.adapter.Adapter(
            self.session,
            service_type=service_type,
            interface="public",
            region_name=self._cloud_region,
            default_microversion=microversion,
        )

    @property
    def network(self) -> NetworkProxy:
        """Neutron's client. The first use asks Neutron for its versions, so call this inside ``translated``."""
        return self._connection.network

    @cached_property
    def _connection(self) -> Connection:
        return Connection(session=self.session, region_name=self._cloud_region)


@contextmanager
def _no_completion_cache(*_: Any, **__: Any) -> Iterator[None]:
    yield


class SessionPool:
    """The clients of the credentials used last. All of them share one pool of connections.

    ``observe_call`` is told of every request that is sent. ``timer`` tells the seconds that sessions age by.
    """

    def __init__(
        self,
        settings: Settings,
        observe_call: CallObserver = unobserved,
        timer: Callable[[], float] = time.monotonic,
    ) -> None:
        self._observe_call = observe_call
        self._transport = CloudTransport(settings.connect_timeout, settings.read_timeout)
        self._cloud_region = settings.openstack_region
        self._clients: TTLCache[str, CloudClients] = TTLCache(SESSIONS_KEPT, settings.cloud_session_seconds, timer)
        self._lock = threading.Lock()

    def clients(self, credential: CloudCredential) -> CloudClients:
        """Return the clients of a credential. Nothing is sent before one of them is used."""
        with self._lock:
            # Now, and not when room is needed: a password that is used no more would stay until then.
            self._clients.expire()
            clients = self._clients.get(credential.digest)
            if clients is None:
                clients = CloudClients(credential, self._transport, self._cloud_region, self._observe_call)
                self._clients[credential.digest] = clients
            return clients
