# Mamushi: which examples to remove, how many, and what it buys. Rules in the order of the data.
import os
import sys

from snakemake.utils import min_version

min_version("9.27")

# The folder of this file, also where another workflow imports it as a module.
HERE = workflow.current_basedir.get_path_or_uri(secret_free=False)
PACKAGES = os.path.join(HERE, "workflow")
sys.path.insert(0, PACKAGES)


# The paper's configuration. One of your own, a folder's config.yaml or a --configfile, stands alone
# unless it says `extends: paper`; the files of the command line are laid over the folder's.
PAPER = os.path.join(HERE, "config.yaml")
own = os.path.exists("config.yaml") and not os.path.samefile("config.yaml", PAPER)
if own:

    configfile: "config.yaml"


if config.get("extends") == "paper" or not (own or workflow.overwrite_configfiles):

    configfile: PAPER

    if own:

        configfile: "config.yaml"


include: "workflow/rules/common.smk"


report: "workflow/report/workflow.rst"


# The configured grid: removal lists and, where all of it can be retrained, tables and figures.
rule all:
    default_target: True
    input:
        lambda wildcards: language_models(),
        removals(),
        # Asked when this target is, since what hinders it is said then.
        lambda wildcards: tables() + figures(),


# A lab's own case: the ranking and the removal lists, without any retraining.
rule removals:
    input:
        removals(),


# The studies of the configuration, each a comparison of its own.
rule studies:
    input:
        studies(),


# What scores and embeddings tell before any retraining: diagnostics, geometry, frontier, advice.
rule evidence:
    input:
        evidence(),


# What each unlearner needs to recover half of the gap, what its models say, how fast they relearn.
rule unlearning:
    input:
        unlearning(),


# What is left in the models after a deletion, beside gold: of single forget texts, between ensembles of
# models, what brings the domain back, and what the models can still do.
rule left:
    input:
        lambda wildcards: [*left(), *left_models()],


# Removal lists of one's own, unlearned.
rule unlearned:
    input:
        lambda wildcards: unlearned_lists(),


# The raw files, cleaned and split: what can be checked before any GPU time is spent.
rule data:
    input:
        examples(),


for stage in STAGES:

    include: f"workflow/rules/{stage}.smk"


explained(targets.check, workflow, os.path.join(HERE, "Snakefile"))
