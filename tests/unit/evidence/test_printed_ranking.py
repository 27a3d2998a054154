"""The two ends of a ranking as a page prints them."""

from mamushi.evidence.ranking import printed_ranking


def test_a_table_per_cell_has_ends_scores_and_masked_texts() -> None:
    cell = {"dataset": "jigsaw", "model": "gemma-2-2b", "seed": 0, "selector": "mamushi"}
    first = {**cell, "end": "top", "place": 1, "rank": 1, "score": 22.6971, "id": "a"}
    last = {**cell, "end": "bottom", "place": 1, "rank": 9, "score": -10.875, "id": "b"}
    other = {**first, "model": "own", "text": "x"}
    text = printed_ranking([{**first, "text": "f*** *you*"}, {**last, "text": "Worm."}, other])
    assert text.replace("\\", "").splitlines()[:12] == [
        ".. list-table:: Jigsaw, Gemma-2-2B, Mamushi",
        "   :header-rows: 1",
        "",
        "   * - Rank",
        "     - Score",
        "     - Sample excerpt",
        "   * - top 1",
        "     - 22.697",
        "     - f*** *you*",
        "   * - bottom 1",
        "     - -10.875",
        "     - Worm.",
    ]
    assert text.count("list-table") == 2 and "f\\*\\*\\* \\*you\\*" in text
