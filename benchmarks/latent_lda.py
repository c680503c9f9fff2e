"""Topics of 10,000 documents of 100 words: tokens a processor second, held-out perplexity, topics found again.

    python benchmarks/latent_lda.py [--sweeps 150] [--documents 10000] [--threads 1] [--methods gibbs learned vb online]

`--methods` says which of ours run: collapsed Gibbs sampling with the true priors and with priors learned, variational Bayes
on all documents and online, the last beside scikit-learn's and gensim's with as many passes. tomotopy, scikit-learn and
gensim run where they are installed. Perplexity is by completion with the same fixed-point proportions for all, so that only
the topics differ.
"""

import argparse
import time

import numpy as np

WORDS, TOPICS, LENGTH, ALPHA, ETA = 5_000, 50, 100, 0.1, 0.1
PASSES = 3


def made(documents, seed=0):
    rng = np.random.default_rng(seed)
    phi = rng.dirichlet(np.full(WORDS, ETA), TOPICS)
    cumulative = phi.cumsum(axis=1)
    theta = rng.dirichlet(np.full(TOPICS, ALPHA), documents + 500)
    topics = np.array([rng.choice(TOPICS, LENGTH, p=t) for t in theta])
    words = np.empty(topics.shape, dtype=np.int32)
    for k in range(TOPICS):
        here = topics == k
        words[here] = np.minimum(np.searchsorted(cumulative[k], rng.random(here.sum())), WORDS - 1)
    return words[:documents], words[documents:], phi


def completion(phi, held_out, steps=60):
    seen, asked = held_out[:, ::2], held_out[:, 1::2]
    table = phi.T[seen]
    theta = np.full((len(seen), len(phi)), 1.0 / len(phi))
    for _ in range(steps):
        parts = table * theta[:, None]
        parts /= parts.sum(axis=2, keepdims=True)
        theta = parts.sum(axis=1) + ALPHA
        theta /= theta.sum(axis=1, keepdims=True)
    return float(np.exp(-np.log(np.einsum("dnk,dk->dn", phi.T[asked], theta)).mean()))


def found_again(phi, truth):
    unit = [p / np.linalg.norm(p, axis=1, keepdims=True) for p in (phi, truth)]
    return int(((unit[0] @ unit[1].T).max(axis=0) > 0.9).sum())


def report(name, passes, phi, cpu, wall, tokens, held_out, truth):
    print(
        f"{name:28s} {passes:5d} passes  cpu {cpu:7.1f} s  wall {wall:7.1f} s  {tokens * passes / cpu / 1e6:6.3f}M/s  "
        f"perplexity {completion(phi, held_out):7.1f}  topics found {found_again(phi, truth)}",
        flush=True,
    )


def timed(work):
    cpu, wall = time.process_time(), time.perf_counter()
    found = work()
    return found, time.process_time() - cpu, time.perf_counter() - wall


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sweeps", type=int, default=150)
    parser.add_argument("--documents", type=int, default=10_000)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--peers", nargs="*", default=["markovia", "tomotopy", "sklearn", "gensim"])
    parser.add_argument("--methods", nargs="*", default=["gibbs", "learned", "vb", "online"])
    options = parser.parse_args()
    words, held_out, truth = made(options.documents)
    tokens = words.size
    print(f"{tokens:,} tokens; the true topics' held-out perplexity is {completion(truth, held_out):.1f}")

    def line(name, passes, phi, cpu, wall):
        report(name, passes, phi, cpu, wall, tokens, held_out, truth)

    if "markovia" in options.peers:
        import markovia as mk

        corpus = mk.topics.Corpus(
            words.reshape(-1), np.arange(len(words) + 1) * LENGTH, [str(w) for w in range(WORDS)]
        )
        given = {
            "doc_topic_prior": ALPHA,
            "topic_word_prior": ETA,
            "n_jobs": options.threads,
            "random_state": 0,
        }
        mk.LDA(TOPICS, max_iter=1, progress=False, **given).fit(corpus[:50])  # compile
        mk.LDA(TOPICS, method="vb", max_iter=1, progress=False, **given).fit(corpus[:50])
        ours = {
            "gibbs": {"max_iter": options.sweeps, **given},
            "learned": {"max_iter": options.sweeps, "n_jobs": options.threads, "random_state": 0},
            "vb": {"method": "vb", "max_iter": 20, "tol": 0.0, **given},
            "online": {"method": "online", "max_iter": PASSES, "tol": 0.0, **given},
        }
        for name in options.methods:
            model, cpu, wall = timed(lambda s=ours[name]: mk.LDA(TOPICS, progress=False, **s).fit(corpus))
            line(f"markovia {name}", model.n_iter_, model.topic_word_, cpu, wall)
    if "tomotopy" in options.peers:
        try:
            import tomotopy
        except ImportError:
            print("tomotopy is not installed")
        else:
            model = tomotopy.LDAModel(k=TOPICS, alpha=ALPHA, eta=ETA, seed=0)
            for row in words:
                model.add_doc([str(w) for w in row])
            _, cpu, wall = timed(lambda: model.train(options.sweeps, workers=options.threads))
            phi = np.zeros((TOPICS, WORDS))
            order = [int(w) for w in model.used_vocabs]
            for k in range(TOPICS):
                phi[k, order] = model.get_topic_word_dist(k)
            line("tomotopy", options.sweeps, np.maximum(phi, 1e-12), cpu, wall)
    if "sklearn" in options.peers:
        from scipy.sparse import csr_array
        from sklearn.decomposition import LatentDirichletAllocation

        rows = np.repeat(np.arange(len(words)), LENGTH)
        table = csr_array((np.ones(tokens), (rows, words.reshape(-1))), shape=(len(words), WORDS))
        for method, passes in (("batch", 2), ("online", PASSES)):
            if {"batch": "vb"}.get(method, method) in options.methods:
                given = {"doc_topic_prior": ALPHA, "topic_word_prior": ETA, "random_state": 0}
                model = LatentDirichletAllocation(TOPICS, learning_method=method, max_iter=passes, **given)
                _, cpu, wall = timed(lambda m=model: m.fit(table))
                phi = model.components_ / model.components_.sum(axis=1, keepdims=True)
                line(f"scikit-learn {method}", passes, phi, cpu, wall)
    if "gensim" in options.peers and "online" in options.methods:
        try:
            from gensim.models import LdaModel
        except ImportError:
            print("gensim is not installed")
        else:
            bags = [
                [(int(w), float(n)) for w, n in zip(*np.unique(row, return_counts=True), strict=True)]
                for row in words
            ]
            names = {w: str(w) for w in range(WORDS)}
            model, cpu, wall = timed(
                lambda: LdaModel(
                    bags,
                    TOPICS,
                    id2word=names,
                    alpha=[ALPHA] * TOPICS,
                    eta=ETA,
                    passes=PASSES,
                    random_state=0,
                )
            )
            line("gensim online", PASSES, model.get_topics(), cpu, wall)


if __name__ == "__main__":
    main()
