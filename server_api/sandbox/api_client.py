"""The API of a running sandbox as one of its callers."""

from typing import Any

import requests

SERVERS = "/api/v2/servers"
TIMEOUT = 30.0


class ApiClient:
    """Talks HTTP to the API at `url` with a bearer token. No status is an error here: the answer is returned."""

    def __init__(self, url: str, token: str) -> None:
        self._url = url
        self._session = requests.Session()
        # the API is on the loopback address, where no proxy finds it
        self._session.trust_env = False
        self._session.headers["Authorization"] = f"Bearer {token}"

    def request(self, method: str, path: str, **options: Any) -> requests.Response:
        """Send one request; `path` begins with a slash."""
        return self._session.request(method, self._url + path, timeout=TIMEOUT, **options)

    def create(self, body: dict[str, Any]) -> requests.Response:
        """Ask for a new server."""
        return self.request("POST", SERVERS, json=body)

    def list(self, **query: str) -> requests.Response:
        """List servers, restricted by the query parameters of contract 1.2."""
        return self.request("GET", SERVERS, params=query)

    def get(self, server_id: str) -> requests.Response:
        """Read one server."""
        return self.request("GET", f"{SERVERS}/{server_id}")

    def update(self, server_id: str, body: dict[str, Any]) -> requests.Response:
        """Replace what can be changed of a server."""
        return self.request("PUT", f"{SERVERS}/{server_id}", json=body)

    def delete(self, server_id: str) -> requests.Response:
        """Ask for a server's deletion."""
        return self.request("DELETE", f"{SERVERS}/{server_id}")

    def act(self, server_id: str, verb: str) -> requests.Response:
        """Send one of start, stop, softreboot and hardreboot."""
        return self.request("POST", f"{SERVERS}/{server_id}/{verb}")
