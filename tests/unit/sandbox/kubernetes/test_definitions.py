"""CustomResourceDefinitions: what they serve, and that what is not implemented is refused when it is asked for."""

import copy

import pytest

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def schema_of(definition):
    return definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


def spec_of(definition):
    return schema_of(definition)["properties"]["spec"]


def test_accepted_definition_is_established_and_served_at_once(empty_api, definition):
    created = empty_api.call("POST", DEFINITIONS, definition).json
    conditions = {item["type"]: item["status"] for item in created["status"]["conditions"]}
    assert conditions == {"NamesAccepted": "True", "Established": "True"}
    assert created["spec"]["names"]["singular"] == "widget"
    assert created["status"]["acceptedNames"]["listKind"] == "WidgetList"
    assert empty_api.names() == []


def set_in(document, path, value):
    *steps, last = path
    for step in steps:
        document = document[step]
    document[last] = value


VERSION = ("spec", "versions", 0)
SCHEMA = (*VERSION, "schema", "openAPIV3Schema")
SPEC = (*SCHEMA, "properties", "spec")


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        (("spec", "conversion"), {"strategy": "Webhook"}, "spec.conversion.strategy"),
        ((*VERSION, "subresources"), {"scale": {}}, "spec.versions[0].subresources.scale"),
        ((*SPEC, "x-kubernetes-embedded-resource"), True, "x-kubernetes-embedded-resource"),
        ((*SPEC, "properties", "host", "format"), "hostname", "properties.host.format"),
        ((*SPEC, "x-kubernetes-validations"), [{"rule": "self =="}], "spec.versions"),
        ((*SPEC, "x-kubernetes-validations"), [{"rule": "true", "messageExpression": "'x'"}], "messageExpression"),
        ((*SPEC, "x-kubernetes-validations"), [{"rule": "true", "optionalOldSelf": True}], "optionalOldSelf"),
        (
            (*SPEC, "properties", "names", "items", "x-kubernetes-validations"),
            [{"rule": "self == oldSelf"}],
            "items.x-kubernetes-validations[0].rule",
        ),
        ((*SPEC, "properties", "host", "pattern"), "(", "properties.host.pattern"),
        ((*SPEC, "properties", "host", "$ref"), "#/x", "properties.host.$ref"),
        ((*SCHEMA, "properties", "metadata"), {"properties": {}}, "properties.metadata"),
        ((*SPEC, "properties"), [], "spec.versions"),
        ((*SPEC, "x-kubernetes-validations"), [7], "spec.versions"),
        ((*SCHEMA, "type"), "string", "openAPIV3Schema.type"),
        ((*VERSION, "schema"), {}, "openAPIV3Schema"),
        ((*VERSION, "storage"), False, "spec.versions"),
        ((*VERSION, "additionalPrinterColumns", 0, "jsonPath"), ".a[", "additionalPrinterColumns[0].jsonPath"),
        ((*VERSION, "additionalPrinterColumns", 0, "type"), "money", "additionalPrinterColumns[0].type"),
        (("spec", "scope"), "Galactic", "spec.scope"),
        (("spec", "group"), "nodot", "spec.group"),
        (("metadata", "name"), "other.example.dev", "metadata.name"),
    ],
)
def test_definition_that_cannot_be_honoured_is_refused(empty_api, definition, path, value, field):
    set_in(definition, path, value)
    response = empty_api.call("POST", DEFINITIONS, definition)
    assert response.status_code == 422, response.text
    assert any(cause["field"].endswith(field) for cause in response.json["details"]["causes"]), response.text
    assert empty_api.call("GET", empty_api.widgets).status_code == 404


def test_kind_that_is_taken_is_refused(api, definition):
    definition["metadata"]["name"] = "gadgets.example.dev"
    definition["spec"]["names"]["plural"] = "gadgets"
    response = api.call("POST", DEFINITIONS, definition)
    assert [cause["field"] for cause in response.json["details"]["causes"]] == ["spec.names.kind"]


@pytest.mark.parametrize(("field", "value"), [("scope", "Cluster"), ("group", "other.dev")])
def test_definition_may_not_change_what_its_objects_depend_on(api, field, value):
    response = api.merge(f"{DEFINITIONS}/widgets.example.dev", {"spec": {field: value}})
    assert f"spec.{field}" in [cause["field"] for cause in response.json["details"]["causes"]]


def test_changed_schema_counts_at_once_also_for_stored_objects(api):
    old = api.create(spec={"mode": "a"})
    definition = api.get(f"{DEFINITIONS}/widgets.example.dev")
    properties = spec_of(definition)["properties"]
    del properties["mode"]
    properties["colour"] = {"type": "string", "default": "red"}
    updated = api.call("PUT", f"{DEFINITIONS}/widgets.example.dev", definition).json
    assert updated["metadata"]["generation"] == 2
    now = api.get(api.path(old))
    assert now["spec"] == {"image": "i", "size": 1, "colour": "red"}
    assert now["metadata"] == old["metadata"]


def test_refused_change_leaves_the_definition_as_it_was(api):
    patch = {"spec": {"conversion": {"strategy": "Webhook"}}}
    assert api.merge(f"{DEFINITIONS}/widgets.example.dev", patch).status_code == 422
    assert api.create(spec={"mode": "a"})["spec"]["mode"] == "a"


def test_dry_run_of_a_definition_serves_nothing(empty_api, definition):
    assert empty_api.call("POST", DEFINITIONS, definition, query_string={"dryRun": "All"}).status_code == 201
    assert empty_api.call("GET", empty_api.widgets).status_code == 404


def test_versions_serve_the_same_objects_each_under_its_name(empty_api, definition):
    versions = definition["spec"]["versions"]
    versions.append({**copy.deepcopy(versions[0]), "name": "v2", "storage": False})
    versions.append({**copy.deepcopy(versions[0]), "name": "v3", "storage": False, "served": False})
    empty_api.call("POST", DEFINITIONS, definition)
    empty_api.create("one")
    newer = empty_api.get("/apis/example.dev/v2/namespaces/default/widgets/one")
    assert newer["apiVersion"] == "example.dev/v2"
    newer["spec"]["size"] = 7
    changed = empty_api.call("PUT", "/apis/example.dev/v2/namespaces/default/widgets/one", newer).json
    assert (changed["apiVersion"], changed["spec"]["size"]) == ("example.dev/v2", 7)
    assert empty_api.get(f"{empty_api.widgets}/one")["apiVersion"] == "example.dev/v1"
    assert empty_api.call("GET", "/apis/example.dev/v3/namespaces/default/widgets").status_code == 404


def test_cluster_scoped_kind_has_no_namespace(empty_api, definition):
    definition["spec"]["scope"] = "Cluster"
    empty_api.call("POST", DEFINITIONS, definition)
    created = empty_api.call("POST", "/apis/example.dev/v1/widgets", empty_api.widget("one"))
    assert created.status_code == 201
    assert "namespace" not in created.json["metadata"]
    assert empty_api.call("GET", empty_api.widgets).status_code == 404


def test_kind_without_status_subresource_stores_status_like_any_field(empty_api, definition):
    del definition["spec"]["versions"][0]["subresources"]
    empty_api.call("POST", DEFINITIONS, definition)
    created = empty_api.call("POST", empty_api.widgets, {**empty_api.widget("one"), "status": {"phase": "Up"}}).json
    assert created["status"] == {"phase": "Up"}
    assert empty_api.call("GET", f"{empty_api.widgets}/one/status").status_code == 404
    assert (
        empty_api.merge(f"{empty_api.widgets}/one", {"status": {"phase": "Down"}}).json["metadata"]["generation"] == 2
    )
