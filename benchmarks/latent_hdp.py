"""How many topics there are, where ten made the documents: HDP beside tomotopy and gensim, each with its defaults.

Run: python benchmarks/latent_hdp.py [--quick]

1,200 documents of 100 words over 1,000 words, drawn from latent Dirichlet allocation with ten topics; 1,000 are learned
from, the others are held out. Topics count from 1% of all words on. Perplexity is that of half of each held-out document
given the other half, under the true topics too. Seconds are of the processor.
"""

import sys
from time import process_time

import numpy as np

import markovia as mk

TOPICS, LEARNED, HELD_OUT, LENGTH, VOCABULARY = 10, 1_000, 200, 100, 1_000


def documents(seed: int) -> tuple[mk.topics.Corpus, mk.topics.Corpus, np.ndarray]:
    """Return documents to learn from and others, and the topics that made them."""
    rng = np.random.default_rng(seed)
    phi = rng.dirichlet(np.full(VOCABULARY, 0.1), TOPICS)
    theta = rng.dirichlet(np.full(TOPICS, 0.1), LEARNED + HELD_OUT)
    words = np.array([rng.choice(VOCABULARY, LENGTH, p=one @ phi) for one in theta], dtype=np.int32)
    corpus = mk.topics.Corpus(
        words.ravel(), np.arange(0, words.size + 1, LENGTH), [f"w{i}" for i in range(VOCABULARY)]
    )
    return corpus[np.arange(LEARNED)], corpus[np.arange(LEARNED, LEARNED + HELD_OUT)], phi


def true_perplexity(held_out: mk.topics.Corpus, phi: np.ndarray) -> float:
    """Return the perplexity under the topics that made the documents."""
    model = mk.HDP(1, random_state=0).fit(held_out)
    model.components_, model.doc_topic_prior_ = phi, np.full(TOPICS, 0.1)
    return model.perplexity(held_out)


def ours(learned: mk.topics.Corpus, held_out: mk.topics.Corpus, seed: int, method: str, sweeps: int) -> str:
    """Return a line on our topics."""
    start = process_time()
    model = mk.HDP(sweeps, method=method, random_state=seed).fit(learned)
    seconds = process_time() - start
    rate = sweeps * len(learned.words) / seconds / 1e6
    return (
        f"{model.n_components_:4d} topics, perplexity {model.perplexity(held_out):7.1f}, {seconds:6.1f} s, "
        f"{rate:5.2f}M tokens a second"
    )


def tomotopy(learned: mk.topics.Corpus, seed: int, sweeps: int = 200) -> str:
    """Return a line on tomotopy's topics."""
    import tomotopy as tp

    model = tp.HDPModel(seed=seed)
    for d in range(len(learned)):
        model.add_doc(learned.document(d))
    start = process_time()
    model.train(sweeps, workers=1)
    seconds = process_time() - start
    counts = np.array(model.get_count_by_topics(), dtype=float)
    rate = sweeps * len(learned.words) / seconds / 1e6
    over = int((counts > 0.01 * counts.sum()).sum())
    return f"{over:4d} topics ({model.live_k} in all), {seconds:6.1f} s, {rate:5.2f}M tokens a second"


def gensim(learned: mk.topics.Corpus, seed: int) -> str:
    """Return a line on gensim's topics."""
    from gensim.corpora import Dictionary
    from gensim.models import HdpModel

    texts = [learned.document(d) for d in range(len(learned))]
    names = Dictionary(texts)
    start = process_time()
    model = HdpModel([names.doc2bow(t) for t in texts], names, random_state=seed)
    return f"{model.get_topics().shape[0]:4d} topics, {process_time() - start:6.1f} s"


def main() -> None:
    """Compare on a few corpora."""
    quick = "--quick" in sys.argv
    mk.HDP(2, random_state=0).fit([["a", "b"] * 50] * 20)
    for seed in range(1 if quick else 3):
        learned, held_out, phi = documents(seed)
        print(
            f"corpus {seed}: {TOPICS} topics, perplexity of the true ones {true_perplexity(held_out, phi):.1f}"
        )
        print(f"  markovia, direct     {ours(learned, held_out, seed, 'direct', 200)}", flush=True)
        start = process_time()
        lda = mk.LDA(TOPICS, random_state=seed).fit(learned)
        print(
            f"  markovia, LDA of 10  perplexity {lda.perplexity(held_out):7.1f}, {process_time() - start:6.1f} s"
        )
        if not quick:
            print(f"  markovia, franchise  {ours(learned, held_out, seed, 'franchise', 200)}", flush=True)
            print(f"  markovia, online     {ours(learned, held_out, seed, 'online', 10)}", flush=True)
        for name, ask in (("tomotopy", tomotopy), ("gensim", gensim)):
            try:
                print(f"  {name:20s} {ask(learned, seed)}", flush=True)
            except ImportError:
                print(f"  {name:20s} not installed")


if __name__ == "__main__":
    main()
