"""Compiled inner loops on flat arrays: Numba, monomorphic, cached on disk, free of the interpreter lock.

Nothing here is imported by `import markovia`; an engine loads a kernel module when it first needs it.
"""

ROOMS = {
    "clique_trees": ("the junction tree", 15),
    "flat_graphs": ("flat graphs", 3),
    "messages": ("message passing", 6),
    "maximising": ("searches for the most probable states", 6),
    "sampling": ("samplers", 6),
    "incomplete": ("expectation-maximisation", 6),
    "fields": ("undirected and conditional fields", 6),
    "structure": ("structure learning", 6),
    "sparse_matrices": ("sparse factors", 12),
    "sequences": ("recursions along sequences", 3),
    "collapsed": ("hidden groups", 6),
    "counting": ("counting", 3),
    "long_vectors": ("optimisers", 1),
    "policy_tree_search": ("policy trees", 11),
}
"""What the rooms of kernels are for, and about how many seconds compiling one takes, once an installation."""
