"""`markovia topics` on a file of texts."""

import pandas as pd

import markovia as mk
from command_line import answer, complaint, run


def test_topics_are_printed_saved_and_written_for_each_document(tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text("\n".join(["the cat and the dog", "sun and rain", "a dog, a cat", ""] * 5) + "\n")
    model, shares = str(tmp_path / "m.json"), str(tmp_path / "shares.csv")
    told = answer(
        "topics", str(path), "-k", "2", "--stop-words", "english", "--max-iter", "40", "-o", model, "--documents", shares
    )  # fmt: skip
    assert (told["documents"], told["empty"], told["vocabulary"]) == (20, 5, 4)
    assert sorted(sorted(t["words"][:2]) for t in told["topics"]) == [["cat", "dog"], ["rain", "sun"]]
    frame = pd.read_csv(shares)
    assert frame.shape == (20, 3)
    assert mk.load(model).top_words(2) == [t["words"][:2] for t in told["topics"]]
    assert "cat" in run("topics", str(path), "-k", "2", "--max-iter", "5").stdout
    assert "no file or folder" in complaint("topics", "nowhere.txt")
