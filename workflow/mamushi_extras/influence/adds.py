"""What this room adds to the core: the section ``influence`` of the configuration."""

from mamushi.config.kinds import Added, Count, Section, key


class Influenced(Section):
    """How the selectors `influence` and `token_influence` measure it: along the training of beta 0,
    which is done again, or at the weights of a model that was contaminated before."""

    points: Count = key(3, "Evenly spaced points of the training; the last is its end.")
    batches: Count = key(
        32, "Of a contaminated model: batches whose squared gradients are Adam's second moment."
    )
    targets: Count = key(
        200,
        "Most texts of each domain whose NLL counts: of the contamination section or, without "
        "one, of either half of the texts the other half.",
    )


config = Added({"influence": (Influenced, Influenced())})
