"""Trained tensors stay beside the card that made them alone."""

from pathlib import Path
from typing import Any

from mamushi.io.tensors import drop_others
from mamushi.lm import storage
from tests.support.models import model


def test_tensors_beside_a_card_stay_only_where_the_card_made_them(tmp_path: Path) -> None:
    card, tensors = tmp_path / "card.json", tmp_path / "trained.safetensors"
    mine: dict[str, Any] = {"settings": {"seed": 0, "domains": ("a", "b")}}
    drop_others(card, mine)
    storage.save_trained(tensors, model("llama"), mine)
    drop_others(card, mine)
    assert tensors.exists()
    drop_others(card, {"settings": {"seed": 1}})
    assert not tensors.exists()
    tensors.write_bytes(b"half")
    drop_others(card, mine)
    assert not tensors.exists()
