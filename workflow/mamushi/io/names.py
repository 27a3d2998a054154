"""What people call what a configuration names, in figures."""

SELECTOR_NAMES = {
    "lr_cos": "LR-COS",
    "cos_mu2": "COS-μ2",
    "vmf": "vMF",
    "mamushi": "Mamushi",
    "coreset": "Coreset",
    "l2_norm": "L2 norm",
    "kcenter": "k-center",
    "random": "Random",
    "lr_maha": "LR-Maha",
    "oracle": "Oracle",
    "mamushi_lr": "Mamushi (LR)",
    "mamushi_lr_matched": "Mamushi (LR, matched)",
    "anti_mamushi": "Anti-Mamushi",
    "stack": "Stack",
    "lexical": "Words (LR)",
    "gaussian": "Gaussian",
}
"""In the order in which figures give them colours and marks: the paper's come first."""
LABELS = SELECTOR_NAMES | {
    "jigsaw": "Jigsaw",
    "newsgroups": "20 Newsgroups",
    "synthetic": "Synthetic",
    "llama-3.1-8b": "Llama-3.1-8B",
    "qwen-2.5-7b": "Qwen-2.5-7B",
    "gemma-2-2b": "Gemma-2-2B",
    "retraining": "Retraining",
    "neggrad_plus": "NegGrad+",
    "salun": "SalUn",
    "npo": "NPO",
    "simnpo": "SimNPO",
    "logit_bias": "Logit bias",
    "tilt": "Tilt",
}


def label(name: str) -> str:
    """Return what people call a selector, dataset, model or unlearner; others keep their name."""
    return LABELS.get(name, name)
