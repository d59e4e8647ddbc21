"""Label selectors."""

from __future__ import annotations

import pytest

from server_api.store import labels


def test_labels_are_joined_by_and_values_by_or() -> None:
    assert labels.selector({"a": ["1"], "b": ["3", "2"]}) == "a=1,b in (2,3)"


def test_nothing_required_selects_everything() -> None:
    assert labels.selector({}) == ""


@pytest.mark.parametrize("value", ["", "x" * 64, "a b", "a,b", "a)", "-a", "a-", "a\n", "é", "a/b"])
def test_b46_a_value_that_no_label_can_have_matches_nothing(value: str) -> None:
    assert labels.selector({"a": [value, "1"]}) == "a=1"
    assert labels.selector({"a": [value], "b": ["1"]}) is None


def test_a_name_of_63_characters_is_legal() -> None:
    assert labels.is_legal_value("a" + "-_." * 20 + "bc")
