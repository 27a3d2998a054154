# ruff: noqa: F403
"""The tables that stages hand to each other, each declared once, with what its columns mean.

See ``columns`` for how a declaration is written; the page "Tables" of the docs is made from them.
"""

from mamushi.artifacts.columns import *
from mamushi.artifacts.schemas.audit import *
from mamushi.artifacts.schemas.evidence import *
from mamushi.artifacts.schemas.models import *
from mamushi.artifacts.schemas.results import *
from mamushi.artifacts.schemas.texts import *
