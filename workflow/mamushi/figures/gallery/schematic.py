"""What a removal does to the training data, by two made-up densities in one dimension: all texts,
after a partial removal, and the oracle's."""

from typing import Any

OF = "evidence"
READS: list[str] = []

FORGET_SHARE, MEAN = 0.4, 1.3
"""Share of the texts; mean of p1, of p2 -MEAN, both with variance 1: the log ratio is 2 MEAN x."""
STAGES = {"contaminated": 0.0, "partial removal": 0.5, "oracle": 1.0}


def draw(grid: dict[str, Any]) -> Any:
    """Draw what is left of both domains at each budget, where the top of the ratio is removed (the
    paper's Figure 1)."""
    import numpy as np
    import pandas as pd
    import seaborn as sns
    from scipy.stats import norm

    from mamushi.figures.style import HEIGHT, TONES, WIDTH

    x = np.linspace(-5, 5, 401)
    forget, retain = FORGET_SHARE * norm.pdf(x, MEAN), (1 - FORGET_SHARE) * norm.pdf(x, -MEAN)
    frames = []
    for name, budget in STAGES.items():
        left = np.where(x < norm.isf(budget, MEAN), forget, 0)
        for fate, height in (("removed", forget - left), ("forget", left), ("retain", retain)):
            columns = {"x": x, "height": height, "part": fate, "stage": f"{name}, β = {budget:g}"}
            frames.append(pd.DataFrame(columns))
    look = {"palette": {**TONES, "removed": "#E4E4E4"}, "multiple": "stack", "element": "poly"}
    shown = {"x": "x", "weights": "height", "hue": "part", "col": "stage", "bins": 100}
    drawn = sns.displot(pd.concat(frames), **shown, **look, facet_kws={"legend_out": False})
    drawn.set_titles("{col_name}")
    drawn.set(xlabel="log-density ratio", ylabel="density", xticks=[], yticks=[])
    sns.move_legend(drawn, "outside lower center", ncols=3, title=None)
    drawn.figure.set_size_inches(WIDTH, HEIGHT + 0.5)
    drawn.figure.set_layout_engine("constrained")
    return drawn.figure
