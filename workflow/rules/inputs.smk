# Functions by which rules and targets find their files, and what happens at the begin and end of a run.
import shutil

# The product: the removal lists of the grid with their manifests.
LISTS = [
    *grid.removals(selectors.of_texts(config, GRID)),
    *grid.manifest_files(config, GRID),
    *grid.span_files(config, GRID),
]


def figures_of(kind):
    """The figures that declare to be of the grid, evidence or one cell."""
    return [name for name, figure in plugins("figure").items() if figure.of == kind]


@cache
def tables_and_figures():
    """What is measured of the grid, where all of it can be; else says what hinders it. Refused is a
    model that is none."""
    explained(refuse, [grid.no_language_model(config, name) for name in GRID["models"]])
    if hindrances := grid.hindrances(config, GRID):
        logger.warning("\n".join(["Nothing is retrained or measured.", *hindrances]))
        return []
    figures = expand(paths.FIGURE, figure=figures_of("grid"))
    return expand(paths.TABLE, table=grid.TABLES) + figures


def labelled(axes):
    """Nothing to wait for: says before anything runs which dataset nobody labelled."""
    corpora = [name for name in axes["datasets"] if name in CORPORA]
    explained(refuse, [f"datasets.{name}: {grid.NO_GOLD}" for name in corpora])
    return []


def measured(axes, results):
    """The files of axes that can be retrained and measured."""
    explained(refuse, grid.hindrances(config, axes))
    return results


def measured_of(wildcards):
    """The perplexities and rankings of the grid, or of a study."""
    axes = config["studies"][wildcards.study] if "study" in wildcards.keys() else GRID
    return measured(axes, grid.measurements(axes)) + grid.rankings(config, axes)


def measured_texts(files):
    """The grid's texts with their NLL, and these files."""
    nll = grid.measurements(GRID, paths.NLL)
    return [*expand(paths.EXAMPLES, dataset=GRID["datasets"]), *nll, *files]


def sweep_files():
    """The perplexities of all sweeps, at the finer budgets as well that an earlier run chose."""
    files = [grid.sweep_files(config, sweep) for sweep in grid.sweeps(config)]
    return list(dict.fromkeys(path for paths in files for path in paths))


def curves_of(wildcards):
    """The curves of unlearning and retraining, of which budgets recover half of the gap."""
    curves = sweep_files() + grid.measurements(config["unlearning"])
    nll = [path.replace("perplexity.parquet", "nll.parquet") for path in curves]
    texts = expand(paths.EXAMPLES, dataset=config["unlearning"]["datasets"])
    return measured(config["unlearning"], [*curves, *nll, *texts])


def corpus_ranking(wildcards, **selector):
    """The ranking of a corpus that nobody labelled; none of another dataset."""
    pattern = paths.POSTERIOR if wildcards.dataset in CORPORA else []
    return expand(pattern, **{**wildcards, **selector})


def ranking_of(wildcards, **selector):
    """What lists are the top of: that ranking, or the scores."""
    scores = expand(paths.SCORES, **{**wildcards, **selector})
    return corpus_ranking(wildcards, **selector) or scores


def refits_of(*names):
    """The refits of these selectors, or of that of the wildcards; none where nothing is to be
    refitted."""
    if config["evidence"]["refits"]["whole"] == 0:
        return []
    fixed = {n for n in config["selectors"] if not selectors.is_refitted(config, n)}
    if not names and fixed:
        return branch(lambda job: job.selector not in fixed, then=paths.REFITS)
    refitted = [name for name in names if name not in fixed] if names else "{selector}"
    return expand(paths.REFITS, selector=refitted, allow_missing=True)


def base_of(pattern):
    """What a derived selector starts from."""

    def path(wildcards):
        name = explained(selectors.derives, config, wildcards.selector)
        return pattern.format(**{**wildcards, "selector": name}) if name else []

    return path


def removed_from(pattern, tokens):
    """The removal list or, of selectors of `tokens`, the spans that are left out or unlearned.
    Mostly there is none of those, and the pattern serves as it is, as in `of_arm`."""
    masking = {n for n in config["selectors"] if selectors.of_tokens(config, n)}
    if not masking:
        return [] if tokens else pattern
    return branch(lambda job: (job.selector in masking) == tokens, then=pattern)


# What the figures of a cell show.
OF_CELL = {
    "scores": paths.SCORES.replace("{selector}", RATIO),
    "geometry": paths.GEOMETRY,
}


def say_finer():
    """Print how many finer budgets the sweeps of this run have chosen, which the next one measures."""
    if missing := [path for path in sweep_files() if not os.path.exists(path)]:
        words = "models at finer budgets are still to be measured: run the same command again"
        print(f"{len(missing)} {words}", file=sys.stderr)


def begin():
    """Before the first job of a run, which a dry run does without: every dataset and model that a
    job is about to read has a path."""

    def read_by(kind, *rules):
        # Another workflow that imports the rules may put words before their names.
        jobs = list(workflow.dag.needrun_jobs())
        return sorted({j.wildcards[kind] for j in jobs if j.rule.name.endswith(rules)})

    models = read_by("model", "model_card", "import_embeddings")
    datasets = read_by("dataset", "examples")
    explained(refuse, grid.unset_paths(config, datasets, models))
    explained(hooks.begin, config)


def end(succeeded):
    """After the last job of a run. What only saved time goes; a run that failed leaves it for the
    next one."""
    if succeeded:
        shutil.rmtree(paths.CACHE, ignore_errors=True)
        shutil.rmtree(paths.CLAIMS, ignore_errors=True)
        if any(job.rule.name.endswith("refine") for job in workflow.dag.jobs):
            say_finer()
    hooks.end(workflow.overwrite_configfiles, config)


# For a workflow that imports this one: Snakemake skips hooks of a module.
hooks.started, hooks.ended = begin, end


onstart:
    begin()


onsuccess:
    end(succeeded=True)


onerror:
    end(succeeded=False)
