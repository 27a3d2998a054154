"""Artifacts and their schemas as stages use them: imported at their first use, since they import
pyarrow, which a dry run does without."""

import importlib.util
import sys
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mamushi.io import schemas
    from mamushi.io import tables as parquet
else:

    def _lazy(name: str) -> ModuleType:
        """Return a module that is executed when something of it is asked for."""
        if name in sys.modules:
            return sys.modules[name]
        spec = importlib.util.find_spec(name)
        spec.loader = importlib.util.LazyLoader(spec.loader)
        sys.modules[name] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    schemas, parquet = _lazy("mamushi.io.schemas"), _lazy("mamushi.io.tables")

__all__ = ["parquet", "schemas"]
