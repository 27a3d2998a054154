"""Found by Snakemake under this name: ``snakemake --logger mamushi`` shows a run in one line."""

from mamushi_runs.progress import LogHandler

__all__ = ["LogHandler"]
