"""What jobs that screen some files of a corpus hand on."""

from mamushi.io.columns import table

SHARD_TEXTS = table("""screen_texts: Distinct texts of some files of a corpus, those with the
lowest keys. The metadata hold the number of rows, the columns and the digests of the files.
key int64: Number that the text has by its content.
text string: The whole text.""")

SHARD_SCORES = table("""screen_scores: What a screen gives each row of some files of a corpus, in
the order of the rows.
key int64: As in `screen_texts`.
scores float32[]: How like the examples it is: by all of them, then by all but each fold.""")

SHARD_PASSED = table("""passed_rows: The rows of some files of a corpus that a screen lets through.
The metadata hold the digests of the files.
id string, text string: The whole text.
section string?: The section that it comes with.
group string?: What it shares with texts that are not independent.
place string: File and row.
label_* string?: Labels that came with the texts.""")
