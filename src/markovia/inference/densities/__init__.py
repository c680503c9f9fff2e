"""Models of functions, in four rooms, each of which knows only those before it.

- `program`: a model of function nodes with its evidence becomes one log density. All of the compilation is there.
- `draws`: what engines on a density share, and the posterior that their draws are.
- `engines`: one file a sampler, an optimiser or a variational fit; they see a density and nothing of the model.
- `closed_forms`: engines that find out which families the density is made of.
"""
