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
include: "workflow/rules/inputs.smk"


report: "workflow/report/workflow.rst"


include: "workflow/rules/targets.smk"


# The configured grid: removal lists and, where all of it can be retrained, tables and figures.
rule all:
    default_target: True
    input:
        lambda wildcards: language_models(),
        LISTS,
        # Asked when this target is, since what hinders it is said then.
        lambda wildcards: tables_and_figures(),


for stage in STAGES:

    include: f"workflow/rules/{stage}.smk"


internals.deploy(workflow.rules, PACKAGES, os.path.join(HERE, "envs/mamushi.yaml"))
explained(targets.check, workflow, os.path.join(HERE, "Snakefile"))
