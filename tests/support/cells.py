"""Cells of CSV tables that a spreadsheet would run, and some that it would not."""

CELLS = {
    '=HYPERLINK("http://x","y")': '\'=HYPERLINK("http://x","y")',
    "@SUM(A1)": "'@SUM(A1)",
    "+1+1": "'+1+1",
    "-2+3": "'-2+3",
    "- a point": "'- a point",
    " =1": "' =1",
    "\u00a0@x": "'\u00a0@x",
    "\ufeff=1": "'\ufeff=1",
    "\uff1d1": "'\uff1d1",
    "\ttab": "'\ttab",
    "\rreturn": "'\rreturn",
    "\n=1": "'\n=1",
    "": "",
    "-5": "-5",
    "+1.5e-3": "+1.5e-3",
    "-.5": "-.5",
    "a=b": "a=b",
    "'=1": "'=1",
    "user@example.org": "user@example.org",
    "1-2": "1-2",
    " plain": " plain",
}
"""By what the table holds: what the CSV file does."""
