# Functions by which rules and targets find their files, and what happens at the begin and end of a run.
import itertools
import shutil

# The product: the removal lists of the grid with their manifests.
LISTS = [
    *grid.removals(selectors.of_texts(config, GRID)),
    *grid.manifest_files(config, GRID),
    *grid.span_files(config, GRID),
]
TABLES = ("sad", "sad_summary", "sad_differences", "selection", "effects", "subgroups")
UNLEARNING_TABLES = ("unlearning", "half_gap", "generations", "relapse")
EVIDENCE_TABLES = (
    *("frontier", "calibration", "advice", "diagnostics", "confounds", "geometry"),
    *("agreement", "predicted", "runtime", "runtime_summary", "paper"),
)
STUDY_TABLES = ("sad", "sad_summary", "sad_differences", "selection")


def figures_of(kind):
    """The figures that declare to be of the grid, evidence or one cell."""
    return [name for name, figure in plugins("figure").items() if figure.of == kind]


@cache
def measurable():
    """Whether the grid can be retrained and measured; says what hinders it."""
    pairs = itertools.product(GRID["datasets"], GRID["models"])
    reasons = [grid.unmeasurable(config, *pair) for pair in pairs]
    hindrances = [reason for reason in dict.fromkeys(reasons) if reason is not None]
    for reason in hindrances:
        logger.warning(f"Nothing is retrained or measured. {reason}")
    return not hindrances


def language_models():
    """Nothing to wait for: says before anything runs which model of the grid is none."""
    explained(refuse, [grid.no_language_model(config, name) for name in GRID["models"]])
    return []


def labelled(axes):
    """Nothing to wait for: says before anything runs which dataset nobody labelled."""
    explained(refuse, [grid.no_labels(config, name) for name in axes["datasets"]])
    return []


def measured(axes, results):
    """The files of axes that can be retrained and measured."""
    pairs = itertools.product(axes["datasets"], axes["models"])
    explained(refuse, [grid.unmeasurable(config, *pair) for pair in pairs])
    return results


def tables_and_figures():
    if not measurable():
        return []
    return [
        *expand(paths.TABLE, table=TABLES),
        *expand(paths.FIGURE, figure=figures_of("grid")),
    ]


def examples_of(datasets):
    return [paths.EXAMPLES.format(dataset=name) for name in dict.fromkeys(datasets)]


RANKINGS = [grid.ranking_pattern(config, selector) for selector in GRID["selectors"]]


def evidence_of_cells():
    """What the evidence of all runs is joined from."""
    of_cell = (
        *(paths.FRONTIER, paths.CALIBRATION, paths.DIAGNOSTICS),
        *(paths.AGREEMENTS, paths.CONFOUNDS, paths.GEOMETRY, paths.RUNTIME),
    )
    return [
        *(pattern.format(**run) for run in grid.cells(GRID) for pattern in of_cell),
        *(paths.PREDICTED.format(**run) for run in grid.predicted(config)),
    ]


def truths_of_cells():
    """The exact ratio, and its estimate, of all runs that have one."""
    runs = with_truth(config)
    return [
        *examples_of(run["dataset"] for run in runs),
        *(paths.CALIBRATED.format(**run) for run in runs),
    ]


def measurements(axes, pattern=paths.PERPLEXITY):
    """The perplexity of every cell, at its ends and at each budget, or what else they have."""
    ends = grid.of_arms(axes, ["gold", "beta0"], pattern)
    return ends + grid.of_arms(axes, grid.retrained_arms(axes), pattern)


def rankings(axes):
    """The ranking of every cell and selector, of texts or of tokens."""
    patterns = [
        grid.ranking_pattern(config, selector) for selector in axes["selectors"]
    ]
    return [pattern.format(**cell) for cell in grid.cells(axes) for pattern in patterns]


def curve(pair, budgets):
    """The perplexities of a sweep: every seed's at these budgets."""
    names = ("dataset", "model", "unlearner", "selector")
    axes = {f"{name}s": [pair[name]] for name in names} | {"budgets": budgets}
    axes["seeds"] = config["unlearning"]["seeds"]
    return grid.of_arms(axes, grid.unlearned_arms(axes))


def curve_ends(dataset, model, unlearners):
    """The perplexities at both ends of all curves: the start, the gold standard, and each unlearner
    on the whole forget set."""
    names = [
        arms.starting_endpoint(config, model),
        "gold",
        *map(arms.whole, unlearners),
    ]
    axes = {**config["unlearning"], "datasets": [dataset], "models": [model]}
    return grid.of_arms(axes, dict.fromkeys(names))


def first_sweep(pair):
    """A sweep at the configured budgets, with the ends that all selectors share."""
    return [
        *curve_ends(pair["dataset"], pair["model"], [pair["unlearner"]]),
        *curve(pair, config["unlearning"]["budgets"]),
    ]


def sweeps():
    """All sweeps at the budgets of this run: the configured ones and, where an earlier run measured
    these, the finer ones that it chose."""
    return [
        path
        for pair in grid.sweeps(config)
        for path in curve(pair, grid.swept(config, pair))
    ]


def with_nll(perplexities):
    """Perplexities, and what each is made of, text by text."""
    name = os.path.basename(paths.NLL)
    return perplexities + [
        os.path.join(os.path.dirname(path), name) for path in perplexities
    ]


def retrained_curves():
    """The curves of retraining, which take part with the configured budgets."""
    axes = config["unlearning"]
    curves = []
    for dataset, model in itertools.product(axes["datasets"], axes["models"]):
        of_pair = {**axes, "datasets": [dataset], "models": [model]}
        curves += grid.of_arms(of_pair, ["beta0"])
        curves += grid.of_arms(of_pair, grid.retrained_arms(axes))
        curves += curve_ends(dataset, model, axes["unlearners"])
    return measured(axes, curves)


# The endpoints that say something beside models from which something was deleted.
SPEAKING = ("base", "contaminated", "gold")


def generations_of(wildcards):
    """What the models of a probed run said: its endpoints, then the unlearned ones."""
    cell = {**wildcards, "seed": int(wildcards.seed)}
    axes = grid.axes(config, "probe")
    unlearned = grid.unlearned_arms(axes) if cell in grid.cells(axes) else []
    return [
        paths.GENERATIONS.format(**cell, arm=arm) for arm in (*SPEAKING, *unlearned)
    ]


def probes():
    """What the tables of the probe are made of."""
    axes = grid.axes(config, "probe")
    probed = [*grid.retrained_arms(axes), *grid.unlearned_arms(axes)]
    files_of_cells = []
    for cell in grid.cells(axes):
        start = arms.starting_endpoint(config, cell["model"])
        files_of_cells += [
            paths.JUDGED.format(**cell),
            paths.PERPLEXITY.format(**cell, arm=start),
        ]
        if config["probe"]["relearning"]:
            files_of_cells.append(paths.NLL.format(**cell, arm="gold"))
            files_of_cells += [
                pattern.format(**cell, arm=arm)
                for arm in (start, "gold", *probed)
                for pattern in (paths.RELEARNING, paths.RELEARNED)
            ]
    return examples_of(axes["datasets"]) + measured(axes, files_of_cells)


def unlearned_lists():
    """What each unlearner makes of each list of the user's, and the perplexity before it."""
    explained(grid.require_lists, config)
    axes = config["unlearning"]
    pairs = itertools.product(axes["unlearners"], axes["lists"])
    listed = [
        arms.LISTED.format(unlearner=unlearner, list=name) for unlearner, name in pairs
    ]
    starts = [
        paths.PERPLEXITY.format(
            **cell, arm=arms.starting_endpoint(config, cell["model"])
        )
        for cell in grid.cells(axes)
    ]
    return starts + [
        path
        for pattern in (paths.TRAINED, paths.PERPLEXITY, paths.CARD)
        for path in grid.of_arms(axes, listed, pattern)
    ]


def layers_read(wildcards):
    """The texts at other depths of the model, for a selector that reads them."""
    is_read = explained(selectors.reads_layers, config, wildcards.selector)
    return paths.LAYERS.format(**wildcards) if is_read else []


def corpus_ranking(wildcards, **selector):
    """The ranking of a corpus that nobody labelled; none of another dataset."""
    if wildcards.dataset not in CORPORA:
        return []
    return expand(paths.POSTERIOR, **{**wildcards, **selector})


def ranking_of(wildcards, **selector):
    """What lists are the top of: that ranking, or the scores."""
    scores = expand(paths.SCORES, **{**wildcards, **selector})
    return corpus_ranking(wildcards, **selector) or scores


SCORE_LOG = "results/logs/score/{dataset}/{model}/seed{seed}/{selector}.log"


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
    """The removal list or, of selectors of ``tokens``, the spans that are left out or unlearned.

    Mostly there is none of those, and the pattern serves as it is: a function in its place would
    be called for thousands of jobs in every dry run.
    """
    if not any(
        selectors.of_tokens(config, selector) for selector in config["selectors"]
    ):
        return [] if tokens else pattern
    return branch(
        lambda wildcards: selectors.of_tokens(config, wildcards.selector) == tokens,
        then=pattern,
    )


# What the figures of a cell show.
OF_CELL = {
    "scores": paths.SCORES.replace("{selector}", RATIO),
    "geometry": paths.GEOMETRY,
}


def without_path(jobs):
    """Lines on the datasets and models that these jobs are about to read and that have no path."""
    # Another workflow that imports the rules may put words before their names.
    examples = [job for job in jobs if job.rule.name.endswith("examples")]
    reading = ("model_card", "import_embeddings")
    for name in sorted({job.wildcards.dataset for job in examples}):
        dataset = config["datasets"][name]
        loader = plugins("dataset")[dataset["kind"]]
        for key, names in loader.files.items():
            if dataset[key] is None and not loader.downloads:
                raw = f"a folder with {', '.join(names)}" if names else "the raw file"
                yield f"datasets.{name}.{key}: {grid.UNSET} {raw}"
    opened = [job for job in jobs if job.rule.name.endswith(reading)]
    for name in sorted({job.wildcards.model for job in opened}):
        model = config["models"][name]
        if "embeddings" in model:
            if model["embeddings"]["path"] is None and name not in WORDS:
                yield f"models.{name}.embeddings.path: {grid.UNSET} a file of vectors"
        elif model["source"] is None:
            yield (
                f"models.{name}.source: {grid.UNSET} a model's folder, or its id on the hub"
            )


def require_inputs(jobs):
    """Every dataset and model that a job is about to read has a path. A dry run does without; a
    real run must not get as far as its first job."""
    explained(refuse, without_path(jobs))


def say_finer():
    """Print how many finer budgets the sweeps of this run have chosen, which the next one measures."""
    pairs = [
        pair
        for pair in grid.sweeps(config)
        if os.path.exists(paths.SWEEP.format(**pair))
    ]
    chosen = [read_json(paths.SWEEP.format(**pair))["budgets"] for pair in pairs]
    missing = [
        path
        for pair, budgets in zip(pairs, chosen)
        for path in curve(pair, budgets)
        if not os.path.exists(path)
    ]
    if missing:
        print(
            f"{len(missing)} models at finer budgets around the half-gap are still to be measured: "
            "run the same command again, or look at them first with -n",
            file=sys.stderr,
        )


def begin():
    """Before the first job of a run."""
    require_inputs(list(workflow.dag.needrun_jobs()))
    explained(hooks.begin, workflow, config)


def end(succeeded):
    """After the last job of a run. What only saved time goes; a run that failed leaves it for the
    next one."""
    if succeeded:
        shutil.rmtree(paths.CACHE, ignore_errors=True)
        shutil.rmtree(paths.CLAIMS, ignore_errors=True)
        if any(job.rule.name.endswith("refine") for job in workflow.dag.jobs):
            say_finer()
    hooks.end(workflow, config, succeeded=succeeded)


# For a workflow that imports this one: Snakemake skips hooks of a module.
hooks.started, hooks.ended = begin, end


onstart:
    begin()


onsuccess:
    end(succeeded=True)


onerror:
    end(succeeded=False)
