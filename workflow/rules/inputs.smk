# Functions by which rules and targets find their files, and what happens at the begin and end of a run.
import itertools
import shutil

# The product: the removal lists of the grid with their manifests.
LISTS = [
    *grid.removals(grid.of_texts(config, GRID)),
    *grid.manifests(config, GRID),
    *grid.spans(config, GRID),
]


@cache
def measurable():
    """Whether the grid can be retrained and measured; says what hinders it."""
    pairs = itertools.product(GRID["datasets"], GRID["models"])
    reasons = [grid.unmeasurable(config, *pair) for pair in pairs]
    hindered = [reason for reason in dict.fromkeys(reasons) if reason is not None]
    for reason in hindered:
        logger.warning(f"Nothing is retrained or measured. {reason}")
    return not hindered


def language_models():
    """Nothing to wait for: says before anything runs which model of the grid is none."""
    explained(grid.require_language_models, config, GRID)
    return []


def labelled(axes):
    """Nothing to wait for: says before anything runs which dataset nobody labelled."""
    explained(grid.require_labels, config, axes)
    return []


def measured(axes, found):
    """The files ``found`` of axes that can be retrained and measured."""
    explained(grid.require_measurable, config, axes)
    return found


def tables_and_figures():
    if not measurable():
        return []
    return [
        *expand(paths.TABLE, table=[*settings.TABLES, "effects", "subgroups"]),
        *expand(paths.FIGURE, figure=settings.figures("grid")),
    ]


def examples_of(datasets):
    return [made_of(paths.EXAMPLES, dataset) for dataset in dict.fromkeys(datasets)]


RANKINGS = [grid.ranking(config, selector) for selector in GRID["selectors"]]


def tables_of_runs():
    """What the evidence of all runs is joined from."""
    patterns = (
        *(paths.FRONTIER, paths.CALIBRATION, paths.DIAGNOSTICS),
        *(paths.CONFOUNDS, paths.GEOMETRY),
    )
    runs = [each.format(**run) for run in grid.cells(GRID) for each in patterns]
    runs += [paths.PREDICTED.format(**run) for run in grid.predicted(config)]
    return [*runs, *(paths.RUNTIME.format(**run) for run in grid.shown(config))]


def first_sweep(pair):
    """A sweep at the configured budgets, with the ends that all selectors share."""
    return [
        *grid.ends(config, pair.dataset, pair.model, [pair.unlearner]),
        *grid.curve(config, {**pair}, config["unlearning"]["budgets"]),
    ]


def refined_sweeps():
    """All sweeps at the budgets that their checkpoints chose."""
    found = []
    for pair in grid.sweeps(config):
        sweep = read_json(checkpoints.refine.get(**pair).output[0])
        found += grid.curve(config, pair, sweep["budgets"])
    return found


def retrained_curves():
    """The curves of retraining, which take part with the configured budgets."""
    axes = config["unlearning"]
    found = [
        path
        for pair in itertools.product(axes["datasets"], axes["models"])
        for path in [
            *grid.retrained_curves(config, *pair),
            *grid.ends(config, *pair, axes["unlearners"]),
        ]
    ]
    return measured(axes, found)


def layers_read(wildcards):
    """The texts at other depths of the model, for a selector that reads them."""
    wanted = explained(settings.reads_layers, config, wildcards.selector)
    return paths.LAYERS.format(**wildcards) if wanted else []


def tokens_read(wildcards):
    """The tokens of the texts, for a selector that reads them."""
    kind = plugin("selector", config["selectors"][wildcards.selector]["kind"])
    if not kind.literals.get("READS_TOKENS"):
        return []
    found = of_arm(paths.TOKENS, "gold")
    return found(wildcards) if callable(found) else found.format(**wildcards)


def corpus_ranking(wildcards, **other):
    """The ranking of a corpus that nobody labelled; none of another dataset."""
    if wildcards.dataset not in CORPORA:
        return []
    return expand(paths.POSTERIOR, **{**wildcards, **other})


def ranking_of(wildcards, **other):
    """What lists are the top of: that ranking, or the scores."""
    scores = expand(paths.SCORES, **{**wildcards, **other})
    return corpus_ranking(wildcards, **other) or scores


SCORE_LOG = "results/logs/score/{dataset}/{model}/seed{seed}/{selector}.log"
REFITTED = config["evidence"]["refits"]["whole"] > 0


def refits_of(selectors):
    """The refits of one selector or several; none where nothing is to be refitted."""
    found = expand(paths.REFITS, selector=selectors, allow_missing=True)
    return found if REFITTED else []


def base_of(pattern):
    """What a derived selector starts from."""

    def path(wildcards):
        name = explained(settings.derives, config, wildcards.selector)
        return pattern.format(**{**wildcards, "selector": name}) if name else []

    return path


def taken_out(pattern, tokens):
    """The removal list or, of selectors of ``tokens``, the spans that retraining leaves out.

    Mostly there is none of those, and the pattern serves as it is: see ``of_arm``.
    """
    if not any(grid.of_tokens(config, selector) for selector in config["selectors"]):
        return [] if tokens else pattern
    return branch(
        lambda wildcards: grid.of_tokens(config, wildcards.selector) == tokens,
        then=pattern,
    )


# What the figures of a cell show.
OF_CELL = {
    "scores": paths.SCORES.replace("{selector}", RATIO),
    "geometry": paths.GEOMETRY,
}


def require_inputs(jobs):
    """Every dataset and model that a job is about to read has a path."""
    reading = ("model_card", "import_embeddings")
    explained(
        grid.require_paths,
        config,
        # Another workflow that imports the rules may put words before their names.
        sorted({j.wildcards.dataset for j in jobs if j.rule.name.endswith("examples")}),
        sorted({j.wildcards.model for j in jobs if j.rule.name.endswith(reading)}),
    )


def begin():
    """Before the first job of a run."""
    require_inputs(list(workflow.dag.needrun_jobs()))
    internals.start_at_once(workflow)
    explained(hooks.begin, workflow, config)


def end(succeeded):
    """After the last job of a run. What only saved time goes; a run that failed leaves it for the
    next one."""
    if succeeded:
        shutil.rmtree(paths.CACHE, ignore_errors=True)
        shutil.rmtree(paths.CLAIMS, ignore_errors=True)
    hooks.end(workflow, config, succeeded=succeeded)


hooks.register(begin, end)


onstart:
    begin()


onsuccess:
    end(succeeded=True)


onerror:
    end(succeeded=False)
