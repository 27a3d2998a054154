"""The texts of seeds that draw their own."""

from mamushi.config.kinds import Settings, setting
from mamushi.running.stage import Input, Job, Output
from mamushi.stages._io import parquet, schemas


class Draw(Settings):
    """The seed that draws, that of the split, and the most texts of a domain in a section."""

    seed: int
    split_seed: int = setting("data.split_seed")
    draws: dict[str, int | None] = setting("datasets.{dataset}.draws")


def draw(*, examples: Input, out: Output, settings: Draw, job: Job) -> None:
    """Deal a dataset's training texts to its contamination and inference sections anew, by seed."""
    from mamushi_extras.draws.drawing import draw_examples

    table, about = parquet.read_table(examples, schemas.EXAMPLES), parquet.read_metadata(examples)
    drawn = draw_examples(table, settings.draws, settings.split_seed, settings.seed)
    parquet.write_table(out, schemas.EXAMPLES, drawn, metadata={**about, "drawn": job.origin})
