import pytest

from server_api.http.identifiers import canonical_uuid

CANONICAL = "6ba7b810-9dad-41d1-80b4-00c04fd430c8"


@pytest.mark.parametrize(
    "text",
    [
        CANONICAL,
        CANONICAL.upper(),
        CANONICAL.replace("-", ""),
        f"urn:uuid:{CANONICAL}",
        f"URN:UUID:{CANONICAL.upper()}",
        f"{{{CANONICAL}}}",
    ],
)
def test_every_textual_form_becomes_canonical(text: str) -> None:
    assert canonical_uuid(text) == CANONICAL


@pytest.mark.parametrize(
    "value",
    [
        "",
        None,
        7,
        CANONICAL[:-1],
        f"{CANONICAL}\n",
        f" {CANONICAL}",
        f"{{{CANONICAL}",
        f"urn:{CANONICAL}",
        CANONICAL.replace("-", "", 1),
        f"{{{CANONICAL.replace('-', '')}}}",
        "g" * 32,
        "٣" * 32,
    ],
)
def test_anything_else_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="not a valid UUID"):
        canonical_uuid(value)
