"""Times and sizes in words."""


def clock(seconds: float) -> str:
    """Return a time in the unit that suits it: ``-``, ``8.0 s``, ``12 min``, ``1,530 h``."""
    if not seconds:
        return "-"
    unit, one = ("s", 1) if seconds < 99.5 else ("min", 60) if seconds < 5970 else ("h", 3600)
    return f"{seconds / one:,.{0 if seconds / one >= 9.95 else 1}f} {unit}"


def size(count: float) -> str:
    """Return bytes in the unit that suits them: ``20 kB``, ``6.8 GB``, ``15.2 TB``."""
    for unit, one in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if count >= one:
            return f"{count / one:.1f} {unit}"
    return f"{count / 1e3:.0f} kB" if count else "-"
