"""`markovia topics`: the topics of a folder of texts, or of a file with a document a line."""

from pathlib import Path
from typing import Annotated, Any

import typer

from markovia.cli import options
from markovia.cli.loading import FileError
from markovia.cli.output import print_json, say, show_table
from markovia.cli.rows import write_csv


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(
        epilog=options.examples(
            "markovia topics corpus.txt --components 20 --stop-words english",
            "markovia topics speeches/ --components 10 --method vb -o topics.json --documents shares.csv",
        )
    )(topics)


def topics(
    corpus: Annotated[
        str,
        typer.Argument(
            metavar="TEXTS", help="A folder of texts, or a file with a document a line.", show_default=False
        ),
    ],
    components: Annotated[
        int, typer.Option("--components", "-k", min=1, metavar="K", help="The number of topics.")
    ] = 10,
    method: Annotated[
        str, typer.Option("--method", metavar="NAME", help="gibbs, vb, online, uncollapsed or map.")
    ] = "gibbs",
    words: Annotated[
        int, typer.Option("--words", "-w", min=1, metavar="N", help="Words shown of each topic.")
    ] = 8,
    stop_words: Annotated[
        str, typer.Option("--stop-words", metavar="NAME", help="Words left out: english, or none.")
    ] = "none",
    min_df: Annotated[
        int,
        typer.Option("--min-documents", min=1, metavar="N", help="Words in fewer documents are left out."),
    ] = 1,
    iterations: Annotated[
        int | None,
        typer.Option("--max-iter", min=1, metavar="N", help="Sweeps or passes.", show_default=False),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Where the model goes: a .json file.", show_default=False
        ),
    ] = None,
    documents: Annotated[
        str | None,
        typer.Option(
            "--documents",
            metavar="FILE",
            help="Write the topics of each document to a .csv file.",
            show_default=False,
        ),
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
        try:
            model.save(output)
        except OSError as error:
            raise FileError.writing(output, error) from error
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
