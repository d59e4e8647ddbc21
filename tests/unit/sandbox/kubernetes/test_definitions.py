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
        ((*VERSION, "selectableFields"), [{"jsonPath": ".spec.size"}], "selectableFields"),
        ((*VERSION, "subresources"), {"scale": {}}, "spec.versions[0].subresources.scale"),
        ((*SPEC, "x-kubernetes-embedded-resource"), True, "x-kubernetes-embedded-resource"),
        ((*SPEC, "properties", "host", "format"), "hostname", "properties.host.format"),
        ((*SPEC, "x-kubernetes-validations"), [{"rule": "self =="}], "x-kubernetes-validations[0].rule"),
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
        ((*SPEC, "properties"), [], "spec.properties"),
        ((*SPEC, "x-kubernetes-validations"), [7], "x-kubernetes-validations[0]"),
        ((*SPEC, "x-kubernetes-validations"), 7, "x-kubernetes-validations"),
        ((*SPEC, "properties", "host", "nullable"), True, "properties.host.nullable"),
        ((*SPEC, "oneOf"), [{"required": ["host"]}], "spec.oneOf"),
        ((*SPEC, "properties", "names", "items"), [{"type": "string"}], "properties.names.items"),
        ((*SPEC, "properties", "names", "x-kubernetes-list-type"), "map", "names.x-kubernetes-list-map-keys"),
        ((*SCHEMA, "type"), "string", "openAPIV3Schema.type"),
        ((*VERSION, "schema"), {}, "openAPIV3Schema"),
        ((*VERSION, "storage"), False, "spec.versions"),
        ((*VERSION, "served"), False, "spec.versions"),
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


@pytest.mark.parametrize(
    ("path", "value"), [(("scope",), "Cluster"), (("group",), "other.dev"), (("names", "kind"), "Gadget")]
)
def test_definition_may_not_change_what_its_objects_depend_on(own_api, path, value):
    definition = own_api.get(f"{DEFINITIONS}/widgets.example.dev")
    set_in(definition, ("spec", *path), value)
    assert own_api.call("PUT", f"{DEFINITIONS}/widgets.example.dev", definition).status_code == 422


def test_changed_schema_counts_at_once_and_for_stored_objects_when_they_are_written(own_api):
    old = own_api.create(spec={"mode": "a"})
    definition = own_api.get(f"{DEFINITIONS}/widgets.example.dev")
    properties = spec_of(definition)["properties"]
    del properties["mode"]
    properties["colour"] = {"type": "string", "default": "red"}
    updated = own_api.call("PUT", f"{DEFINITIONS}/widgets.example.dev", definition).json
    assert updated["metadata"]["generation"] == 2
    assert own_api.get(own_api.path(old)) == old
    assert own_api.create(spec={"mode": "a"})["spec"] == {"image": "i", "size": 1, "colour": "red"}
    assert own_api.merge(own_api.path(old), {"spec": {"size": 2}}).json["spec"]["colour"] == "red"


def test_refused_change_leaves_the_definition_as_it_was(api):
    patch = {"spec": {"conversion": {"strategy": "Webhook"}}}
    assert api.merge(f"{DEFINITIONS}/widgets.example.dev", patch).status_code == 422
    assert api.create(spec={"mode": "a"})["spec"]["mode"] == "a"


def test_only_the_version_that_is_stored_is_served(empty_api, definition):
    versions = definition["spec"]["versions"]
    versions.append({**copy.deepcopy(versions[0]), "name": "v2", "storage": False})
    assert empty_api.call("POST", DEFINITIONS, definition).status_code == 201
    empty_api.create("one")
    assert empty_api.call("GET", "/apis/example.dev/v2/namespaces/default/widgets/one").status_code == 404
    assert empty_api.get("/apis/example.dev")["versions"] == [{"groupVersion": "example.dev/v1", "version": "v1"}]


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
