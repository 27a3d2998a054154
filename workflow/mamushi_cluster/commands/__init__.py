"""Commands for people that need Snakemake, see ``mamushi.cli``."""
