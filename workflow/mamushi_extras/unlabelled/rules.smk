# A corpus that nobody labelled: examples were scored against it, and its texts are ranked.
CORPORA = [name for name in DATASETS if sources.is_unlabelled(DATASETS[name])]


rule posterior:
    input:
        examples=paths.EXAMPLES,
        scores=paths.SCORES,
    output:
        out=paths.POSTERIOR,
    log:
        "results/logs/posterior/{dataset}/{model}/seed{seed}/{selector}.log",
    wildcard_constraints:
        dataset=only(CORPORA),
    localrule: True
    conda:
        "../../../envs/mamushi.yaml"
    params:
        settings=settings("posterior", "dataset"),
    shell:
        "exec python -m mamushi posterior --examples {input.examples:q}"
        " --scores {input.scores:q} --out {output.out:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"


# As the manifests of other lists, of a list at any budget.
rule corpus_manifest:
    input:
        examples=paths.EXAMPLES,
        duplicates=paths.DUPLICATES,
        scores=paths.SCORES,
        refits=refits_of(),
        posterior=paths.POSTERIOR,
    output:
        out=paths.MANIFEST,
    log:
        "results/logs/corpus_manifest/{dataset}/{model}/seed{seed}/{selector}/beta{beta}.log",
    wildcard_constraints:
        dataset=only(CORPORA),
    localrule: True
    conda:
        "../../../envs/mamushi.yaml"
    params:
        settings=settings("corpus-manifest", *CELL, "selector", "beta"),
    shell:
        "exec python -m mamushi corpus-manifest --examples {input.examples:q}"
        " --duplicates {input.duplicates:q} --scores {input.scores:q} --refits {input.refits:q}"
        " --posterior {input.posterior:q} --out {output.out:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"


use rule remove as corpus_remove with:
    input:
        examples=paths.EXAMPLES,
        scores=paths.POSTERIOR,
        duplicates=paths.DUPLICATES,
    wildcard_constraints:
        dataset=only(CORPORA),


use rule stability as corpus_stability with:
    input:
        examples=paths.EXAMPLES,
        duplicates=paths.DUPLICATES,
        scores=paths.SCORES,
        ranked=paths.POSTERIOR,
        refits=refits_of(),
    wildcard_constraints:
        dataset=only(CORPORA),


ruleorder: corpus_remove > remove
ruleorder: corpus_stability > stability
ruleorder: corpus_manifest > manifests
