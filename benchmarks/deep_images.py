"""A convolutional autoencoder and a U-Net diffusion on drawn pictures of 28 x 28, on every device that JAX sees.

    python benchmarks/deep_images.py [--rows 8192] [--epochs 3] [--batch 256] [--devices gpu cpu]

The pictures are discs and bars of random places and sizes. Seconds an epoch are those of running, after compiling, which is
printed beside them; the bound is that of the last epoch. The same script runs on a processor alone.
"""

import argparse

import numpy as np

import markovia as mk
import markovia.distributions as dist

SIDE = 28


def pictures(n, seed=0):
    """Return n binary pictures, one a row: a disc or a bar each."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:SIDE, :SIDE]
    middle = rng.uniform(8, 20, (n, 2, 1, 1))
    size = rng.uniform(3, 7, (n, 1, 1))
    far, up = x - middle[:, 0], y - middle[:, 1]
    disc = far**2 + up**2 < size**2
    bar = (np.abs(far) < size) & (np.abs(up) < size / 3)
    drawn = np.where(rng.random((n, 1, 1)) < 0.5, disc, bar)
    return drawn.reshape(n, -1).astype(np.float64)


def autoencoder():
    """Return a convolutional variational autoencoder."""
    m = mk.BayesianNetwork()
    m.add(
        "decoder",
        mk.Parameter(mk.networks.cnn_decoder(16, (SIDE, SIDE), channels=(64, 32), hidden=256, flat=True)),
    )
    m.add("encoder", mk.Parameter(mk.networks.gaussian_cnn((SIDE, SIDE), 16, channels=(32, 64), hidden=256)))
    m.add("z", dist.Normal(0, 1), size=16, plate="row")
    m.add("x", lambda z, decoder: dist.Bernoulli(logits=decoder(z)), plate="row")
    m.guide("z", lambda x, encoder: dist.Normal(*encoder(x)))
    return m


def diffusion():
    """Return a diffusion with a U-Net."""
    m = mk.BayesianNetwork()
    net = mk.networks.unet((SIDE, SIDE), channels=(32, 64), hidden=128)
    m.add("law", mk.Parameter(mk.networks.diffusion(net, shape=(SIDE * SIDE,), steps=200)))
    m.add("x", lambda law: law.distribution(), plate="row")
    return m


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rows", type=int, default=8192)
    options.add_argument("--epochs", type=int, default=3)
    options.add_argument("--batch", type=int, default=256)
    options.add_argument("--devices", nargs="*", default=None)
    chosen = options.parse_args()
    import jax

    devices = chosen.devices or list(dict.fromkeys([jax.default_backend(), "cpu"]))
    rows = pictures(chosen.rows)
    for name, stated, scale in (
        ("autoencoder", autoencoder, (0.0, 1.0)),
        ("diffusion", diffusion, (-1.0, 1.0)),
    ):
        seconds = {}
        for device in devices:
            data = {"x": scale[0] + (scale[1] - scale[0]) * rows}
            model = stated().fit(data, epochs=chosen.epochs, batch=chosen.batch, seed=0, device=device)
            trained = model.fit_.details["training"]
            seconds[device] = trained.seconds / chosen.epochs
            bound = model.fit_.history[-1]
            print(
                f"{name:12} {device:4} {seconds[device]:8.3f} s an epoch of {chosen.rows:,} rows, "
                f"compiled in {trained.compile_seconds:.1f} s, bound {bound:.1f}",
                flush=True,
            )
        first, last = devices[0], devices[-1]
        if first != last:
            print(
                f"{name:12} {last} takes {seconds[last] / seconds[first]:.1f} times as long as {first}",
                flush=True,
            )


if __name__ == "__main__":
    main()
