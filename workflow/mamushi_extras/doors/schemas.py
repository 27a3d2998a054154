"""What texts score by a saved scorer."""

from mamushi.io.columns import table

NEW_SCORES = table("""new_scores: Texts of any table by a saved scorer, in the order of its rows.
id string?: As in the table; without a column of ids the number of the row, from 1.
score float64?: The higher, the more like the forget domain; null of a text that says nothing.""")
