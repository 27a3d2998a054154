"""What surrounds a run and changes no result. This package knows Snakemake and SLURM; ``mamushi``,
which the jobs run, knows neither. No stage imports it, so that a change here runs nothing again."""
