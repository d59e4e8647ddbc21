"""Owners and dependents, namespaces and definitions: what follows from a deletion."""

import pytest

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def delete(api, obj, policy=None):
    query = {"propagationPolicy": policy} if policy else {}
    response = api.call("DELETE", api.path(obj), query_string=query)
    assert response.status_code == 200, response.text
    return response.json


def release(api, obj):
    assert api.merge(api.path(obj), {"metadata": {"finalizers": None}}).status_code == 200


def test_dependents_follow_their_owner(api):
    owner = api.create()
    child = api.child(owner)
    grandchild = api.child(child)
    stranger = api.create()
    delete(api, owner)
    assert [api.exists(obj) for obj in (owner, child, grandchild, stranger)] == [False, False, False, True]


def test_owner_goes_first_in_the_background(api):
    owner = api.create()
    child = api.child(owner, finalizers=["held.dev/f"])
    delete(api, owner, "Background")
    assert not api.exists(owner)
    assert "deletionTimestamp" in api.get(api.path(child))["metadata"]


def test_owner_waits_for_dependents_in_the_foreground(api):
    owner = api.create()
    child = api.child(owner, finalizers=["held.dev/f"])
    waiting = delete(api, owner, "Foreground")
    assert waiting["metadata"]["finalizers"] == ["foregroundDeletion"]
    assert "deletionTimestamp" in api.get(api.path(child))["metadata"]
    release(api, child)
    assert not api.exists(child)
    assert not api.exists(owner)


def test_foreground_deletion_reaches_down_before_it_comes_up(api):
    owner = api.create("owner")
    child = api.child(owner)
    grandchild = api.child(child, finalizers=["held.dev/f"])
    delete(api, owner, "Foreground")
    assert all(api.exists(obj) for obj in (owner, child, grandchild))
    since = api.get(api.widgets)["metadata"]["resourceVersion"]
    release(api, grandchild)
    gone = [obj["metadata"]["name"] for type_, obj in api.watch(resourceVersion=since) if type_ == "DELETED"]
    assert gone == [obj["metadata"]["name"] for obj in (grandchild, child, owner)]


def test_dependent_of_two_owners_stays_until_the_last_is_gone(api):
    first, second = api.create(), api.create()
    child = api.child(first, second)
    delete(api, first)
    left = api.get(api.path(child))["metadata"]["ownerReferences"]
    assert [owner["uid"] for owner in left] == [second["metadata"]["uid"]]
    delete(api, second)
    assert not api.exists(child)


def test_owner_in_the_foreground_is_released_by_a_dependent_that_leaves_it(api):
    owner = api.create()
    child = api.child(owner, finalizers=["held.dev/f"])
    delete(api, owner, "Foreground")
    assert api.merge(api.path(child), {"metadata": {"ownerReferences": None}}).status_code == 200
    assert not api.exists(owner)
    assert api.exists(child)


def test_object_of_an_owner_that_never_was_is_collected(api):
    ghost = {"metadata": {"name": "ghost", "uid": "no-such-uid"}}
    assert not api.exists(api.child(ghost))


def test_object_of_an_owner_whose_kind_is_not_served_is_left_alone(api):
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d", "uid": "elsewhere"}
    assert api.exists(api.create(ownerReferences=[owner]))


@pytest.mark.parametrize("policy", ["Sideways", "Orphan"])
def test_propagation_that_is_not_implemented_deletes_nothing(api, policy):
    one = api.create()
    assert api.call("DELETE", api.path(one), query_string={"propagationPolicy": policy}).status_code == 422
    assert api.call("DELETE", api.path(one), {"propagationPolicy": policy}).status_code == 422
    assert api.exists(one)


def test_namespace_takes_its_contents_along(api):
    api.call("POST", "/api/v1/namespaces", {"metadata": {"name": "team"}})
    api.call("POST", "/apis/example.dev/v1/namespaces/team/widgets", api.widget())
    api.call("POST", "/api/v1/namespaces/team/configmaps", {"metadata": {"name": "m"}})
    assert api.call("DELETE", "/api/v1/namespaces/team").json["status"] == "Success"
    assert api.get("/apis/example.dev/v1/widgets")["items"] == []
    assert api.call("GET", "/api/v1/namespaces/team").status_code == 404


def test_namespace_waits_for_finalizers_inside_and_takes_nothing_new(api):
    api.call("POST", "/api/v1/namespaces", {"metadata": {"name": "team"}})
    team = "/apis/example.dev/v1/namespaces/team/widgets"
    api.call("POST", team, api.widget("held", finalizers=["held.dev/f"]))
    terminating = api.call("DELETE", "/api/v1/namespaces/team").json
    assert terminating["status"]["phase"] == "Terminating"
    assert api.call("POST", team, api.widget()).status_code == 403
    api.merge(f"{team}/held", {"metadata": {"finalizers": None}})
    assert api.call("GET", "/api/v1/namespaces/team").status_code == 404


def test_default_namespace_stays(api):
    assert api.call("DELETE", "/api/v1/namespaces/default").status_code == 403
    assert api.call("DELETE", "/api/v1/namespaces").status_code == 405


def test_definition_takes_its_objects_along(own_api):
    own_api.create()
    own_api.call("DELETE", f"{DEFINITIONS}/widgets.example.dev")
    assert own_api.call("GET", own_api.widgets).status_code == 404
    assert own_api.call("GET", "/apis/example.dev").status_code == 404


def test_definition_waits_for_finalizers_of_its_objects(own_api, definition):
    held = own_api.create(finalizers=["held.dev/f"])
    own_api.call("DELETE", f"{DEFINITIONS}/widgets.example.dev")
    assert own_api.call("POST", own_api.widgets, own_api.widget()).status_code == 405
    release(own_api, held)
    assert own_api.call("GET", f"{DEFINITIONS}/widgets.example.dev").status_code == 404
    assert own_api.call("GET", own_api.widgets).status_code == 404
    assert own_api.call("POST", DEFINITIONS, definition).status_code == 201
    assert own_api.names() == []
