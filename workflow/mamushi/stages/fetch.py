"""Copies of what lies at URLs."""

from __future__ import annotations

import json
import os

from mamushi.config.kinds import Config, Settings, setting
from mamushi.config.sources import fetched_urls
from mamushi.io import paths
from mamushi.running.stage import Job, Output


def url_of(config: Config, place: str) -> str:
    """Return the URL of a copy, without a signature."""
    return fetched_urls(config)[paths.FETCHED.format(place=place)]


class FetchSettings(Settings):
    """The URL without a signature."""

    url: str = setting(url_of)


def fetch_data(*, receipt: Output, settings: FetchSettings, job: Job) -> None:
    """Copy what lies at a URL, with a receipt of it.

    The URL as the configuration has it, which may let in whoever knows it, is no setting: the
    workflow hands it over in the environment.
    """
    from mamushi.data.remote import fetch_copy

    urls = json.loads(os.environ.get("MAMUSHI_URLS", "{}"))
    fetch_copy(urls.get(str(receipt), settings.url))
