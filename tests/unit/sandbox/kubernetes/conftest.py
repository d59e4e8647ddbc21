"""An embedded Kubernetes API in process, with one custom resource defined: `widgets.example.dev`."""

import copy
import itertools
from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from werkzeug.test import Client, TestResponse

from server_api.sandbox.kubernetes import EmbeddedKubernetes
from server_api.sandbox.kubernetes.app import PEER_GONE, KubernetesApp

WIDGETS = "/apis/example.dev/v1/namespaces/default/widgets"
MERGE = "application/merge-patch+json"
DEFINITION: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.dev"},
    "spec": {
        "group": "example.dev",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"], "categories": ["toys"]},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "additionalPrinterColumns": [
                    {"name": "Ready", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].reason'},
                    {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
                    {"name": "Mode", "type": "string", "jsonPath": ".spec.mode", "priority": 1},
                    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
                ],
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "required": ["image"],
                                "x-kubernetes-validations": [
                                    {
                                        "rule": "has(self.host) == has(oldSelf.host)",
                                        "message": "host may not come or go",
                                    },
                                    {"rule": "!has(self.size) || self.size != 13", "message": "13 is unlucky"},
                                ],
                                "properties": {
                                    "image": {"type": "string", "minLength": 1},
                                    "host": {"type": "string"},
                                    "size": {"type": "integer", "minimum": 0, "default": 1},
                                    "mode": {"type": "string", "enum": ["a", "b"]},
                                    "port": {"x-kubernetes-int-or-string": True},
                                    "note": {"type": "string"},
                                    "key": {"type": "string", "format": "byte"},
                                    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                                    "names": {
                                        "type": "array",
                                        "x-kubernetes-list-type": "set",
                                        "items": {"type": "string"},
                                    },
                                },
                            },
                            "status": {
                                "type": "object",
                                "properties": {
                                    "phase": {"type": "string"},
                                    "conditions": {
                                        "type": "array",
                                        "x-kubernetes-list-type": "map",
                                        "x-kubernetes-list-map-keys": ["type"],
                                        "items": {
                                            "type": "object",
                                            "required": ["type"],
                                            "properties": {"type": {"type": "string"}, "reason": {"type": "string"}},
                                        },
                                    },
                                },
                            },
                        },
                    }
                },
            }
        ],
    },
}


class Api:
    """The API as a client sees it, with shorthands for widgets."""

    widgets = WIDGETS

    def __init__(self, app: KubernetesApp) -> None:
        self.app = app
        self._client = Client(app)
        self._numbers = itertools.count(1)

    def call(self, method: str, path: str, body: Any = None, **options: Any) -> TestResponse:
        """One request; a body that is not bytes is sent as JSON."""
        data = body if isinstance(body, bytes) or body is None else orjson.dumps(body)
        options.setdefault("content_type", "application/json")
        return self._client.open(path, method=method, data=data, **options)

    def get(self, path: str, **query: str) -> Any:
        """The document at a path that must be there."""
        response = self.call("GET", path, query_string=query)
        assert response.status_code == 200, response.text
        return response.json

    def widget(self, name: str | None = None, spec: dict[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
        """A widget as a client would write it, not yet stored."""
        return {
            "apiVersion": "example.dev/v1",
            "kind": "Widget",
            "metadata": {"name": name or f"w{next(self._numbers)}", **metadata},
            "spec": {"image": "i", **(spec or {})},
        }

    def create(self, name: str | None = None, spec: dict[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
        """A stored widget."""
        response = self.call("POST", WIDGETS, self.widget(name, spec, **metadata))
        assert response.status_code == 201, response.text
        created: dict[str, Any] = response.json
        return created

    def child(self, *owners: dict[str, Any], **metadata: Any) -> dict[str, Any]:
        """A stored widget that is owned by others, and keeps them until it is gone itself."""
        references = [
            {
                "apiVersion": "example.dev/v1",
                "kind": "Widget",
                "name": owner["metadata"]["name"],
                "uid": owner["metadata"]["uid"],
                "blockOwnerDeletion": True,
            }
            for owner in owners
        ]
        return self.create(ownerReferences=references, **metadata)

    def path(self, obj: dict[str, Any]) -> str:
        return f"{WIDGETS}/{obj['metadata']['name']}"

    def merge(self, path: str, patch: Any, **query: str) -> TestResponse:
        return self.call("PATCH", path, patch, content_type=MERGE, query_string=query)

    def names(self, **query: str) -> list[str]:
        return [item["metadata"]["name"] for item in self.get(WIDGETS, **query)["items"]]

    def exists(self, obj: dict[str, Any]) -> bool:
        return self.call("GET", self.path(obj)).status_code == 200

    def watch(self, path: str = WIDGETS, **query: str) -> list[tuple[str, Any]]:
        """What a watch tells until it has nothing more to say; with `timeoutSeconds`, until that has passed."""
        client_left = {} if "timeoutSeconds" in query else {PEER_GONE: lambda: True}
        response = self.call("GET", path, query_string={"watch": "true", **query}, environ_overrides=client_left)
        assert response.status_code == 200, response.text
        events = [orjson.loads(line) for line in response.data.splitlines()]
        return [(event["type"], event["object"]) for event in events]


def serve_widgets(api: Api, definition: dict[str, Any]) -> None:
    response = api.call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
    assert response.status_code == 201, response.text


@pytest.fixture
def definition() -> dict[str, Any]:
    """The CustomResourceDefinition of widgets, to be changed freely."""
    return copy.deepcopy(DEFINITION)


@pytest.fixture
def empty_api(tmp_path) -> Iterator[Api]:
    """An API of its own, without any custom resource."""
    app = KubernetesApp(tmp_path / "objects.db")
    yield Api(app)
    app.store.close()


@pytest.fixture
def own_api(empty_api, definition) -> Api:
    """An API of its own that serves widgets, for tests that change or break it."""
    serve_widgets(empty_api, definition)
    return empty_api


@pytest.fixture(scope="session")
def running() -> Iterator[EmbeddedKubernetes]:
    with EmbeddedKubernetes() as running:
        serve_widgets(Api(running.app), DEFINITION)
        yield running


@pytest.fixture
def cluster(running) -> EmbeddedKubernetes:
    """A server on a port that serves widgets; its objects and namespaces are those of this test only."""
    running.reset()
    api = Api(running.app)
    for namespace in api.get("/api/v1/namespaces")["items"]:
        if namespace["metadata"]["name"] not in ("default", "kube-system"):
            api.call("DELETE", f"/api/v1/namespaces/{namespace['metadata']['name']}")
    return running


@pytest.fixture
def api(cluster) -> Api:
    """What the server answers, without the way through a socket."""
    return Api(cluster.app)
