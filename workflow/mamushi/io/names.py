"""What people call what a configuration names, in figures."""

SELECTORS = (
    *("lr_cos", "cos_mu2", "vmf", "mamushi", "coreset", "l2_norm", "kcenter", "random", "lr_maha"),
    *("oracle", "cross_entropy", "mamushi_lr", "anti_mamushi", "mamushi_lr_matched", "stack"),
    *("lexical", "gaussian"),
)
"""In the order in which figures give them colours and marks: the paper's come first."""
PLAIN = (*SELECTORS, "jigsaw", "synthetic", "retraining", "logit_bias", "tilt")
"""Names that become words by a space in the place of `_`, and a capital."""
LABELS = {
    "lr_cos": "LR-COS",
    "cos_mu2": "COS-μ2",
    "vmf": "vMF",
    "kcenter": "k-center",
    "lr_maha": "LR-Maha",
    "mamushi_lr": "Mamushi (LR)",
    "mamushi_lr_matched": "Mamushi (LR, matched)",
    "anti_mamushi": "Anti-Mamushi",
    "lexical": "Words (LR)",
    "newsgroups": "20 Newsgroups",
    "llama-3.1-8b": "Llama-3.1-8B",
    "qwen-2.5-7b": "Qwen-2.5-7B",
    "gemma-2-2b": "Gemma-2-2B",
    "neggrad_plus": "NegGrad+",
    "salun": "SalUn",
    "npo": "NPO",
    "simnpo": "SimNPO",
}


def label(name: str) -> str:
    """Return what people call a selector, dataset, model or unlearner; others keep their name."""
    return LABELS.get(name, name.capitalize().replace("_", " ") if name in PLAIN else name)
