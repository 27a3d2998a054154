"""What this room adds to the core: copies of what lies at URLs."""

from mamushi.config.kinds import Added
from mamushi_extras.remote.urls import is_remote, localize, unsigned

config = Added(name=lambda place: unsigned(place) if is_remote(place) else place, local=localize)
