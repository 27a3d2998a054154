"""Copies of what lies at URLs."""

from __future__ import annotations

import json
import os

from mamushi.config.kinds import Config, Section
from mamushi.config.sources import beside, fetched_urls
from mamushi.io import paths
from mamushi.running.stage import Job, Output, typed


class FetchSettings(Section):
    """``table`` is whether it is read as a table, and so has to be one."""

    url: str
    table: bool

    @classmethod
    def of(cls, config: Config, *, place: str) -> FetchSettings:
        """Return what a copy is of."""
        url = fetched_urls(config)[paths.FETCHED.format(place=place)]
        tables = [
            places.get(key)
            for dataset in config["datasets"].values()
            for places in (dataset, beside(dataset))
            for key in ("path", "like", "unlike")
        ]
        return typed(cls, url=url, table=url in tables)


def fetch_data(*, receipt: Output, settings: FetchSettings, job: Job) -> None:
    """Copy what lies at a URL, with a receipt of it.

    The URL as the configuration has it, which may let in whoever knows it, is no setting: the
    workflow hands it over in the environment.
    """
    from mamushi.data.remote import fetch_copy

    urls = json.loads(os.environ.get("MAMUSHI_URLS", "{}"))
    fetch_copy(urls.get(str(receipt), settings.url), table=settings.table)
