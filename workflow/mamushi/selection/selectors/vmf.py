"""Two von Mises-Fisher densities: s(x) = k1 m1.u - k2 m2.u with u = x/|x|.

Paper, Appendix "Baselines"; Banerjee et al. (2005). Per domain m = sum(u)/|sum(u)| and, with the
mean resultant length R = |sum(u)|/n, the concentration k = R (d - R^2) / (1 - R^2). The normalising
constants do not depend on x and are left out, so the score is a log-density ratio up to a constant.
"""

from mamushi.selection.pool import Pool, Scored


def score(pool: Pool, settings: object, seed: int) -> Scored:
    """Score s(x) = k1 m1.u - k2 m2.u. ``details`` has k1 and k2."""
    import numpy as np

    from mamushi.selection.statistics import products

    total = np.zeros((2, pool.width))
    norm = np.empty(len(pool.ids))
    for rows, x in pool.blocks():
        length = np.sqrt(np.einsum("ij,ij->i", x, x))
        norm[rows] = np.where(length == 0, 1, length)  # A row of zeros has no direction.
        # The sum of the unit vectors of either domain, without making them.
        forget = pool.forget[rows]
        total += (np.stack([forget, ~forget]) / norm[rows]) @ x
    n1, fits = int(pool.forget.sum()), []
    for resultant, n in zip(total, (n1, len(pool.ids) - n1), strict=True):
        length = float(np.linalg.norm(resultant))
        mean = length / n
        fits.append((resultant / length, mean * (pool.width - mean**2) / (1 - mean**2)))
    (m1, k1), (m2, k2) = fits
    along, _ = products(pool, (k1 * m1 - k2 * m2)[None])
    return Scored(along[:, 0] / norm, details={"concentration": {"forget": k1, "retain": k2}})
