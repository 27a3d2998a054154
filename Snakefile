# Mamushi: which examples to remove, how many, and what it buys.
# Rules in the order in which data flows; each reads like a sentence of the paper's method section.
import os
import sys

from snakemake.utils import min_version

min_version("9.27")

sys.path.insert(0, os.path.join(workflow.basedir, "workflow"))


# A folder's own config.yaml goes before the one that stands beside this file; values given by
# --configfile and --config are laid over it.
here = os.path.exists("config.yaml")


configfile: "config.yaml" if here else os.path.join(workflow.basedir, "config.yaml")


include: "workflow/rules/common.smk"


report: "workflow/report/workflow.rst"


wildcard_constraints:
    dataset=NAME,
    model=NAME,
    selector=NAME,
    study=NAME,
    seed=r"\d+",
    beta=r"0\.\d\d",
    endpoint="base|contaminated|gold|beta0",


# The whole of the configured grid: removal lists, and tables and figures unless there is something
# in it that cannot be retrained and measured.
rule all:
    default_target: True
    input:
        removals(),
        tables(),
        figures(),


# A lab's own case: the ranking and the removal lists, without any retraining.
rule removals:
    input:
        removals(),


# The studies of the configuration, each a comparison of its own.
rule studies:
    input:
        studies(),


# The raw files, cleaned and split: what can be checked before any GPU time is spent.
rule data:
    input:
        examples(),


include: "workflow/rules/data.smk"
include: "workflow/rules/models.smk"
include: "workflow/rules/endpoints.smk"
include: "workflow/rules/embed.smk"
include: "workflow/rules/select.smk"
include: "workflow/rules/retrain.smk"
include: "workflow/rules/evaluate.smk"
include: "workflow/rules/tables.smk"
include: "workflow/rules/figures.smk"


onstart:
    require_paths()
