# Where the jobs of a run share what the frozen blocks of a model make of its texts.
environment.give(PACKAGES, MAMUSHI_TRUNKS=f"{paths.CACHE}/trunks")
