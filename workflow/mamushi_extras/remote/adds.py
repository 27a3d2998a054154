"""What this room adds to the core: copies of what lies at URLs."""

from mamushi.config.kinds import Added
from mamushi_extras.remote.urls import is_remote, localize, unsigned_url

config = Added(name=lambda path: unsigned_url(path) if is_remote(path) else path, local=localize)
