# Perplexity of the models that are kept, on the static held-out sets of both domains.
rule evaluate:
    input:
        arm_files("examples", "model_card", "tokens", "trained", "unlearned"),
    output:
        out=paths.PERPLEXITY,
        nll=paths.NLL,
    log:
        "results/logs/evaluate/{dataset}/{model}/seed{seed}/{arm}.log",
    wildcard_constraints:
        arm=ANY_ARM if config["keep_checkpoints"] else "[^/]+(?:/lists/[^/]+)?",
    conda:
        "../../envs/mamushi.yaml"
    threads: RESOURCES.cores(8)
    resources:
        **on_gpu("evaluate"),
    params:
        settings=settings("evaluate", "model", "arm"),
    shell:
        "exec python -m mamushi evaluate --examples {input.examples:q} --tokens {input.tokens:q}"
        " --model-card {input.model_card:q} --trained {input.trained:q}"
        " --unlearned {input.unlearned:q} --out {output.out:q} --nll {output.nll:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"
