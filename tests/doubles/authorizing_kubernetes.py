"""The embedded Kubernetes API with role-based access control, by the manifests in ``deploy/kubernetes``.

A service account's bearer token is its name. Requests without a token are a cluster administrator's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

import orjson
import yaml

from server_api.sandbox.kubernetes import EmbeddedKubernetes, write_kubeconfig

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

MANIFESTS = Path(__file__).parents[2] / "deploy/kubernetes"
ALL_NAMES = ""

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


@dataclass(frozen=True, order=True)
class Right:
    """One verb on one resource, of one object or of ``ALL_NAMES``; the namespace is empty for the whole cluster."""

    namespace: str
    group: str
    resource: str
    verb: str
    name: str = ALL_NAMES


def granted(account: str, namespace: str) -> set[Right]:
    """Return every right that the manifests give a service account."""
    documents = [
        document for file in sorted(MANIFESTS.glob("*.yaml")) for document in yaml.safe_load_all(file.read_text())
    ]
    roles = {
        (document["kind"], document["metadata"]["name"]): document for document in documents if "rules" in document
    }
    subject = {"kind": "ServiceAccount", "name": account, "namespace": namespace}
    rights: set[Right] = set()
    for binding in documents:
        if subject in binding.get("subjects", ()):
            reference = binding["roleRef"]
            role = roles[reference["kind"], reference["name"]]
            place = binding["metadata"].get("namespace", "")
            assert role["metadata"].get("namespace", place) == place
            rights.update(right for rule in role["rules"] for right in _rights(place, rule))
    return rights


def _rights(namespace: str, rule: dict[str, Any]) -> Iterator[Right]:
    for group in rule["apiGroups"]:
        for resource in rule["resources"]:
            for verb in rule["verbs"]:
                for name in rule.get("resourceNames", (ALL_NAMES,)):
                    yield Right(namespace, group, resource, verb, name)


class AuthorizingKubernetes:
    """A running API. ``used`` is what each account asked for and may do, ``refused`` what it may not."""

    def __init__(self, namespace: str, accounts: Iterable[str]) -> None:
        self.rights = {account: granted(account, namespace) for account in accounts}
        self.used: dict[str, set[Right]] = defaultdict(set)
        self.refused: dict[str, set[Right]] = defaultdict(set)
        self.embedded = EmbeddedKubernetes()
        self._namespace = namespace
        self._answer = self.embedded.app
        self.embedded._server.wsgi_app = self

    def kubeconfig(self, path: Path, account: str = "") -> Path:
        """Write a kubeconfig of an account, of the administrator without one, and return its path."""
        write_kubeconfig(path, self.embedded.url, account or None, self._namespace)
        return path

    def superfluous(self, account: str) -> set[Right]:
        """Return what an account may do and never did."""
        return self.rights[account] - self.used[account]

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request, if it is allowed."""
        account = environ.get("HTTP_AUTHORIZATION", "").removeprefix("Bearer ")
        if account:
            asked = _asked(environ)
            allowing = {asked, Right(asked.namespace, asked.group, asked.resource, asked.verb)} & self.rights[account]
            if not allowing:
                self.refused[account].add(asked)
                return _forbidden(account, asked, start_response)
            self.used[account] |= allowing
        return self._answer(environ, start_response)


def _asked(environ: WSGIEnvironment) -> Right:
    parts = environ["PATH_INFO"].strip("/").split("/")
    group, rest = ("", parts[2:]) if parts[0] == "api" else (parts[1], parts[3:])
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    name = rest[1] if len(rest) > 1 else ALL_NAMES
    verb = _VERBS.get(environ["REQUEST_METHOD"], "get" if name else "list")
    if "watch" in parse_qs(environ.get("QUERY_STRING", "")):
        verb = "watch"
    return Right(namespace, group, "/".join([rest[0], *rest[2:]]), verb, name)


def _forbidden(account: str, asked: Right, start_response: StartResponse) -> Iterable[bytes]:
    message = f"{account} cannot {asked.verb} {asked.resource} in {asked.namespace or 'the cluster'}"
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "message": message}
    start_response("403 Forbidden", [("Content-Type", "application/json")])
    return [orjson.dumps(status | {"code": 403})]
