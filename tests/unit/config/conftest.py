"""Configurations are tested without data."""

import pytest


@pytest.fixture(autouse=True)
def no_data(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MAMUSHI_JIGSAW", "MAMUSHI_NEWSGROUPS"):
        monkeypatch.delenv(name, raising=False)
