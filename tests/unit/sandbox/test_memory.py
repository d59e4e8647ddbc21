from pathlib import Path

from server_api.sandbox.memory import Memory


def test_a_later_start_recalls_what_an_earlier_one_made_up(tmp_path: Path) -> None:
    path = tmp_path / "seed.json"
    first = Memory(path)
    values = first.id("region"), first.secret("token.USER")
    second = Memory(path)
    assert (second.id("region"), second.secret("token.USER")) == values


def test_only_its_owner_can_read_it(tmp_path: Path) -> None:
    path = tmp_path / "seed.json"
    Memory(path).secret("token")
    assert path.stat().st_mode & 0o777 == 0o600


def test_ids_begin_with_a_letter_and_differ(tmp_path: Path) -> None:
    memory = Memory(tmp_path / "seed.json")
    ids = {memory.id(f"image.{number}") for number in range(30)}
    assert len(ids) == 30
    assert all(id_[0].isalpha() for id_ in ids)
