"""Copies of what lies at URLs."""

from __future__ import annotations

import json
import os

from mamushi.config.kinds import Config, Section
from mamushi.config.sources import fetched_urls
from mamushi.io import paths
from mamushi.running.stage import Job, Output, typed


class FetchSettings(Section):
    """The URL without a signature."""

    url: str

    @classmethod
    def of(cls, config: Config, *, place: str) -> FetchSettings:
        """Return what a copy is of."""
        return typed(cls, url=fetched_urls(config)[paths.FETCHED.format(place=place)])


def fetch_data(*, receipt: Output, settings: FetchSettings, job: Job) -> None:
    """Copy what lies at a URL, with a receipt of it.

    The URL as the configuration has it, which may let in whoever knows it, is no setting: the
    workflow hands it over in the environment.
    """
    from mamushi.data.remote import fetch_copy

    urls = json.loads(os.environ.get("MAMUSHI_URLS", "{}"))
    fetch_copy(urls.get(str(receipt), settings.url))
