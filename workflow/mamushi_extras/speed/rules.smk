# Where the jobs of a run share what the frozen blocks of a model make of its texts.
hooks.share(PACKAGES, MAMUSHI_TRUNKS=f"{paths.CACHE}/trunks")
