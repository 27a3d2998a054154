# What the paper proves, on the texts whose exact ratio is known.
from mamushi_extras.theory.stages import truths

EXTRA_TABLES["theory_tables"] = (
    "Theory",
    ["theory"],
    truths,
)


# The target of this room.
rule theory:
    input:
        paths.TABLE.replace("{table}", "theory"),
