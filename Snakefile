# Mamushi: which examples to remove, how many, and what it buys. The workflow is in workflow/Snakefile,
# where the catalogue of workflows looks for it.
include: "workflow/Snakefile"


# Snakemake takes no default target over from a file that is included.
workflow.default_target = "all"
