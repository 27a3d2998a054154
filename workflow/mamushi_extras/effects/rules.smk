# What a removal changes, and for whom: tables of the grid beside SAD.
from mamushi_extras.effects.stages import effect_files

EXTRA_TABLES["effects"] = ("Tables", ["effects", "subgroups"], effect_files)
OF_GRID += ["effects", "subgroups"]
