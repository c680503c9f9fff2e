"""`markovia topics`: the topics of a folder of texts, or of a file with a document a line."""

from pathlib import Path
from typing import Annotated, Any

from markovia.cli.rows import write_csv
from markovia.cli.terminal import options
from markovia.cli.terminal.loading import writing
from markovia.cli.terminal.options import argument, command, option
from markovia.cli.terminal.output import print_json, say, show_table


@command(
    "markovia topics corpus.txt --components 20 --stop-words english",
    "markovia topics speeches/ --components 10 --method vb -o topics.json --documents shares.csv",
)
def topics(
    corpus: Annotated[str, argument("TEXTS", "A folder of texts, or a file with a document a line.")],
    components: Annotated[int, option("--components -k K", "The number of topics.", min=1)] = 10,
    method: Annotated[str, option("--method NAME", "gibbs, vb, online, uncollapsed or map.")] = "gibbs",
    words: Annotated[int, option("--words -w N", "Words shown of each topic.", min=1)] = 8,
    stop_words: Annotated[str, option("--stop-words NAME", "Words left out: english, or none.")] = "none",
    min_df: Annotated[int, option("--min-documents N", "Words in fewer documents are left out.", min=1)] = 1,
    iterations: Annotated[int | None, option("--max-iter N", "Sweeps or passes.", min=1)] = None,
    output: Annotated[str | None, option("--output -o FILE", "Where the model goes: a .json file.")] = None,
    documents: Annotated[
        str | None, option("--documents FILE", "Write the topics of each document to a .csv file.")
    ] = None,
    seed: options.Seed = 0,
    as_json: options.Json = False,
) -> None:
    """Find the topics of texts by latent Dirichlet allocation."""
    import pandas as pd

    from markovia.data.text.corpus import Corpus
    from markovia.models.topics.lda import LDA

    read = Corpus.read(Path(corpus), stop_words=None if stop_words == "none" else stop_words, min_df=min_df)
    settings: Any = {"method": method, "max_iter": iterations, "random_state": seed, "progress": None}
    model = LDA(components, **settings).fit(read)
    if output is not None:
        with writing(output):
            model.save(output)
    if documents is not None:
        shares = pd.DataFrame(model.transform(read), columns=[f"topic{k}" for k in range(components)])
        shares.insert(0, "document", read.names)
        write_csv(iter([shares]), documents)
    found = model.top_words(words)
    report = {
        "documents": len(read), "words": len(read.words), "vocabulary": len(read.vocabulary), "method": method,
        "empty": int((read.lengths == 0).sum()), "outside_vocabulary": int(read.unknown.sum()),
        "topics": [
            {"topic": k, "share": float(model.topic_shares_[k]), "words": found[k]} for k in range(components)
        ],
    }  # fmt: skip
    if as_json:
        print_json(report)
        return
    say(str(read))
    rows = [[str(k), f"{model.topic_shares_[k]:.3f}", " ".join(found[k])] for k in range(components)]
    show_table(["topic", "share", "words"], rows)
    for place, what in ((output, "the model"), (documents, "the topics of documents")):
        if place is not None:
            say(f"wrote {what} to {place}")
