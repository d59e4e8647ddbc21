"""Lists: selectors, pages, and the revision they belong to."""

import pytest


def refused(api, **query):
    response = api.call("GET", api.widgets, query_string=query)
    assert response.status_code >= 400, response.text
    return response.status_code, response.json["reason"]


@pytest.fixture
def labelled(api):
    for name, labels in (("a", {"k": "a"}), ("b", {"k": "b"}), ("c", {"k": "c", "x": "1"}), ("d", {})):
        api.create(name, labels=labels)
    return api


@pytest.mark.parametrize(
    ("selector", "chosen"),
    [
        ("k=a", "a"),
        ("k==a", "a"),
        ("k!=a", "bcd"),
        ("k in (a,b)", "ab"),
        ("k in ( a , b ),k!=a", "b"),
        ("k notin (a,b)", "cd"),
        ("k", "abc"),
        ("!k", "d"),
        ("k,x=1", "c"),
        ("k=", ""),
        ("", "abcd"),
    ],
)
def test_label_selector_chooses(labelled, selector, chosen):
    assert "".join(labelled.names(labelSelector=selector)) == chosen


@pytest.mark.parametrize(
    "selector", ["k in a", "k in (a", "k=a b", "k=a=b", "=a", "k>1", "k=" + "v" * 64, "k in (a),,x", "a b"]
)
def test_text_that_is_no_label_selector_is_refused(api, selector):
    assert refused(api, labelSelector=selector) == (400, "BadRequest")


def test_field_selector_chooses_by_name_and_namespace(labelled):
    assert labelled.names(fieldSelector="metadata.name=b") == ["b"]
    assert labelled.names(fieldSelector="metadata.name!=b,metadata.namespace=default") == ["a", "c", "d"]
    assert labelled.names(fieldSelector="metadata.namespace=elsewhere") == []


def test_field_selector_on_a_field_that_cannot_be_selected_is_refused(api):
    assert refused(api, fieldSelector="spec.size=1") == (400, "BadRequest")
    assert refused(api, fieldSelector="metadata.name") == (400, "BadRequest")


def test_events_are_found_by_the_object_they_are_about(api):
    events = "/api/v1/namespaces/default/events"
    for name, uid in (("one", "1"), ("two", "2")):
        about = {"kind": "Widget", "name": name, "namespace": "default", "uid": uid}
        api.call("POST", events, {"metadata": {"name": name}, "involvedObject": about, "reason": "Made"})
    found = api.get(events, fieldSelector="involvedObject.name=two,involvedObject.uid=2,involvedObject.kind=Widget")
    assert [item["metadata"]["name"] for item in found["items"]] == ["two"]


def test_list_says_what_it_is_and_at_which_revision(api):
    created = api.create()
    listed = api.get(api.widgets)
    assert (listed["apiVersion"], listed["kind"]) == ("example.dev/v1", "WidgetList")
    assert listed["metadata"] == {"resourceVersion": created["metadata"]["resourceVersion"]}
    assert listed["items"] == [created]


def test_list_across_namespaces_is_ordered_by_namespace_and_name(api):
    api.create("b")
    elsewhere = "/apis/example.dev/v1/namespaces/kube-system/widgets"
    api.call("POST", elsewhere, api.widget("a"))
    found = api.get("/apis/example.dev/v1/widgets")["items"]
    assert [item["metadata"]["namespace"] for item in found] == ["default", "kube-system"]


def pages(api, **query):
    """All pages of a list, following the continue tokens."""
    found, token = [], ""
    while True:
        page = api.get(api.widgets, **query, **({"continue": token} if token else {}))
        found.append(page)
        token = page["metadata"].get("continue", "")
        if not token:
            return found


def test_pages_add_up_to_the_list(api):
    for number in range(7):
        api.create(f"w{number}")
    found = pages(api, limit="3")
    assert [len(page["items"]) for page in found] == [3, 3, 1]
    assert len({page["metadata"]["resourceVersion"] for page in found}) == 1
    assert [item["metadata"]["name"] for page in found for item in page["items"]] == api.names()


def test_pages_of_a_selection_hold_as_many_as_were_asked_for(labelled):
    found = pages(labelled, limit="2", labelSelector="k")
    assert [len(page["items"]) for page in found] == [2, 1]


def test_watch_from_the_revision_of_pages_tells_what_changed_between_them(api):
    for name in "abcd":
        api.create(name)
    first = api.get(api.widgets, limit="2")["metadata"]
    api.call("DELETE", f"{api.widgets}/a")
    api.create("aa")
    api.create("e")
    rest = api.get(api.widgets, **{"continue": first["continue"]})
    assert [item["metadata"]["name"] for item in rest["items"]] == ["c", "d", "e"]
    assert rest["metadata"]["resourceVersion"] == first["resourceVersion"]
    events = api.watch(resourceVersion=rest["metadata"]["resourceVersion"])
    assert [(type_, obj["metadata"]["name"]) for type_, obj in events] == [
        ("DELETED", "a"),
        ("ADDED", "aa"),
        ("ADDED", "e"),
    ]


def test_b40_page_behind_compacted_history_is_gone(api):
    for name in "abc":
        api.create(name)
    first = api.get(api.widgets, limit="1")["metadata"]
    api.create("d")
    api.app.store.compact()
    assert refused(api, **{"continue": first["continue"]}) == (410, "Expired")
    assert len(api.names()) == 4


@pytest.mark.parametrize(
    "query",
    [
        {"continue": "nonsense"},
        {"continue": "WzEsMl0="},
        {"limit": "-1"},
        {"limit": "many"},
        {"limit": "9" * 30},
        {"resourceVersion": "x"},
        {"continue": "WzEsMl0=", "resourceVersion": "1"},
        {"resourceVersion": "1", "resourceVersionMatch": "Exact"},
        {"resourceVersion": "1", "resourceVersionMatch": "NotOlderThan"},
        {"sendInitialEvents": "true"},
        {"watch": "perhaps"},
        {"labelselector": "k"},
        {"shardSelector": "1"},
    ],
)
def test_query_that_cannot_be_honoured_is_refused(api, query):
    assert refused(api, **query) == (400, "BadRequest")


def test_revision_this_server_never_had_is_not_waited_for(api):
    assert refused(api, resourceVersion="999999") == (504, "Timeout")


def test_stored_objects_are_answered_byte_for_byte(api):
    one = api.create(spec={"free": {"z": 1, "a": 2}})
    single = api.call("GET", api.path(one)).data
    assert single in api.call("GET", api.widgets).data
