"""The wire: paths, methods, media types, sizes, authentication. What is not served answers an error."""

import gzip

import orjson
import pytest

from server_api.sandbox.kubernetes.app import KubernetesApp

from .conftest import MERGE, Api

BODY_LIMIT = 3 * 1024 * 1024


def refused(response, code, reason):
    assert response.status_code == code, response.text
    assert (response.json["kind"], response.json["reason"], response.json["code"]) == ("Status", reason, code)
    return response.json


@pytest.mark.parametrize(
    "path",
    [
        "/nothing",
        "/api/v2",
        "/api/v1/pods",
        "/api/v1/namespaces/default/pods",
        "/apis/apps/v1",
        "/apis/example.dev/v2/widgets",
        "/apis/example.dev/v1/namespaces/default/widgets/one/scale",
        "/apis/example.dev/v1/namespaces/default/widgets/one/status/more",
        "/apis/example.dev/v1/widgets/one",
        "/apis/example.dev/v1/namespaces//widgets",
        "/api/v1/namespaces/default/namespaces",
        "/api/v1/namespaces/default/serviceaccounts/a/token",
        "/api/v1/namespaces/default/finalize",
        "/apis/events.k8s.io/v1",
        "/openapi/v2",
        "/openapi/v3/apis/apps/v1",
    ],
)
def test_path_that_is_not_served_is_not_found(api, path):
    refused(api.call("GET", path), 404, "NotFound")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("DELETE", "/apis/example.dev/v1/namespaces/default/widgets", {"GET", "POST"}),
        ("POST", "/apis/example.dev/v1/namespaces/default/widgets/one", {"GET", "PUT", "PATCH", "DELETE"}),
        ("DELETE", "/apis/example.dev/v1/namespaces/default/widgets/one/status", {"GET", "PUT", "PATCH"}),
        ("POST", "/apis/example.dev/v1/widgets", {"GET"}),
        ("DELETE", "/apis/example.dev/v1/widgets", {"GET"}),
        ("OPTIONS", "/api/v1/namespaces", {"GET", "POST"}),
    ],
)
def test_method_that_is_not_served_names_those_that_are(api, method, path, allowed):
    response = api.call(method, path, api.widget())
    refused(response, 405, "MethodNotAllowed")
    assert set(response.headers["Allow"].split(", ")) == allowed


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b'"x"', b'{"a": NaN}', b"\xff"])
def test_body_that_is_no_object_is_refused(api, body):
    refused(api.call("POST", api.widgets, body), 400, "BadRequest")


@pytest.mark.parametrize(
    "change",
    [
        {"metadata": []},
        {"metadata": {"name": {}}},
        {"metadata": {"generateName": "a-", "name": ""}},
        {"metadata": {"name": "a", "finalizers": [{}]}},
        {"metadata": {"name": "a", "finalizers": 7}},
        {"metadata": {"name": "a", "ownerReferences": [7]}},
        {"metadata": {"name": "a", "labels": [1]}},
        {"metadata": {"name": "a", "namespace": 7}},
        {"spec": 7},
        {"spec": {"image": "i", "names": {"a": 1}}},
    ],
)
def test_object_of_any_shape_gets_a_clear_refusal(api, change):
    body = orjson.dumps({**api.widget(), **change})
    assert api.call("POST", api.widgets, body).status_code in (400, 422)
    path = api.path(api.create("kept", finalizers=["held.dev/f"]))
    api.call("DELETE", path)
    assert api.call("PATCH", path, body, content_type=MERGE).status_code in (400, 422)


@pytest.mark.parametrize(
    "options",
    [
        {"preconditions": {"uid": "x"}},
        {"orphanDependents": True},
        {"dryRun": ["All"]},
        {"sliceAndDice": True},
    ],
)
def test_delete_options_that_are_not_implemented_delete_nothing(api, options):
    one = api.create()
    refused(api.call("DELETE", api.path(one), options), 400, "BadRequest")
    assert api.exists(one)


@pytest.mark.parametrize("operation", [{}, 7, {"op": "add", "path": 5}, {"op": "add", "path": "spec", "value": 1}])
def test_malformed_json_patch_is_refused(api, operation):
    path = api.path(api.create())
    response = api.call("PATCH", path, [operation], content_type="application/json-patch+json")
    assert response.status_code in (400, 422)


def test_secret_of_the_wrong_shape_is_refused(api):
    secret = {"metadata": {"name": "s"}, "data": ["a"], "stringData": {"a": "b"}}
    refused(api.call("POST", "/api/v1/namespaces/default/secrets", secret), 422, "Invalid")


@pytest.mark.parametrize("media_type", ["application/yaml", "application/vnd.kubernetes.protobuf", "text/plain"])
def test_body_of_another_media_type_is_refused(api, media_type):
    refused(api.call("POST", api.widgets, api.widget(), content_type=media_type), 415, "UnsupportedMediaType")
    one = api.create()
    patch = {"spec": {"size": 2}}
    refused(api.call("PATCH", api.path(one), patch, content_type=media_type), 415, "UnsupportedMediaType")


def test_compressed_body_is_refused(api):
    response = api.call("POST", api.widgets, gzip.compress(b"{}"), headers={"Content-Encoding": "gzip"})
    refused(response, 400, "BadRequest")


def test_body_over_the_limit_is_refused(api):
    body = api.widget(spec={"note": "x" * BODY_LIMIT})
    refused(api.call("POST", api.widgets, body), 413, "RequestEntityTooLarge")


@pytest.mark.parametrize(
    ("accept", "code"),
    [
        ("*/*", 200),
        ("application/vnd.kubernetes.protobuf, application/json", 200),
        ("application/vnd.kubernetes.protobuf", 406),
        ("application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", 406),
        ("application/json;as=Table;g=meta.k8s.io;v=v1beta1,application/json", 200),
        ("application/yaml", 406),
    ],
)
def test_form_that_is_not_served_is_not_pretended(api, accept, code):
    response = api.call("GET", api.widgets, headers={"Accept": accept})
    assert response.status_code == code
    if code == 200:
        assert response.json["kind"] == "WidgetList"


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ({"dryRun": "All"}, 400),
        ({"fieldValidation": "Loose"}, 422),
        ({"labelSelector": "a=b"}, 400),
        ({"force": "true"}, 400),
        ({"pretty": "true", "fieldManager": "me", "timeout": "5s"}, 201),
    ],
)
def test_query_parameter_without_meaning_for_the_verb_is_refused(api, query, code):
    assert api.call("POST", api.widgets, api.widget(), query_string=query).status_code == code


def test_parameter_given_twice_is_refused(api):
    refused(api.call("GET", f"{api.widgets}?labelSelector=a&labelSelector=b"), 400, "BadRequest")


def test_forced_patch_is_refused(api):
    refused(api.merge(api.path(api.create()), {}, force="true"), 400, "BadRequest")


def test_token_is_required_of_everything_but_health(tmp_path):
    app = KubernetesApp(tmp_path / "objects.db", token="right")
    api = Api(app)
    for sent in ("", "Bearer wrong", "Bearer rïght", "right"):
        headers = {"Authorization": sent}
        for path in ("/api/v1/namespaces", "/apis", "/version", "/openapi/v3"):
            refused(api.call("GET", path, headers=headers), 401, "Unauthorized")
    assert api.call("GET", "/api", headers={"Authorization": "Bearer right"}).status_code == 200
    assert api.call("GET", "/readyz").status_code == 200
    app.store.close()


def test_unexpected_failure_is_a_status_without_details(api, monkeypatch, caplog):
    def fail(*_):
        raise RuntimeError("hunter2")

    monkeypatch.setattr(api.app.store, "read", fail)
    response = api.call("GET", f"{api.widgets}/one")
    refused(response, 500, "InternalError")
    assert "hunter2" not in response.text
    assert "RuntimeError" in caplog.text


def test_objects_outlive_the_process(tmp_path, definition):
    database = tmp_path / "objects.db"
    first = KubernetesApp(database)
    Api(first).call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
    one = Api(first).create("one")
    first.store.close()
    second = KubernetesApp(database)
    again = Api(second)
    assert again.get(again.path(one)) == one
    later = again.create()["metadata"]["resourceVersion"]
    assert int(later) > int(one["metadata"]["resourceVersion"])
    second.store.close()


@pytest.mark.parametrize("path", ["/api", "/api/", "/apis", "/apis/", "/apis/example.dev/", "/apis/example.dev/v1/"])
def test_discovery_is_served_with_and_without_a_slash_at_the_end(api, path):
    assert api.call("GET", path).status_code == 200


def test_discovery_tells_names_verbs_and_subresources(api):
    group = api.get("/apis/example.dev")
    assert group["preferredVersion"] == {"groupVersion": "example.dev/v1", "version": "v1"}
    main, status = api.get("/apis/example.dev/v1")["resources"]
    assert (main["singularName"], main["shortNames"], main["categories"]) == ("widget", ["wd"], ["toys"])
    assert "watch" in main["verbs"]
    assert (status["name"], status["verbs"]) == ("widgets/status", ["get", "patch", "update"])


def test_openapi_tells_kubectl_that_the_server_validates_and_nothing_else(api):
    place = api.get("/openapi/v3")["paths"]["apis/example.dev/v1"]["serverRelativeURL"]
    document = api.get(place)
    patch = document["paths"]["/apis/example.dev/v1/widgets"]["patch"]
    assert [parameter["name"] for parameter in patch["parameters"]] == ["fieldValidation"]
    assert patch["x-kubernetes-group-version-kind"] == {"group": "example.dev", "version": "v1", "kind": "Widget"}
    assert "components" not in document
