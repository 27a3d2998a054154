# ruff: noqa: F403
"""The tables that stages hand to each other, each declared once, with what its columns mean.

See ``columns`` for how a declaration is written; the page "Tables" of the docs is made from them.
"""

from mamushi.io.columns import *
from mamushi.io.schemas.evidence import *
from mamushi.io.schemas.models import *
from mamushi.io.schemas.results import *
from mamushi.io.schemas.texts import *
