# What the paper proves, on the texts whose exact ratio is known.
rule theory:
    input:
        paths.TABLE.replace("{table}", "theory"),
