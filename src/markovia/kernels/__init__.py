"""Compiled inner loops on flat arrays: Numba, monomorphic, cached on disk, free of the interpreter lock.

Nothing here is imported by `import markovia`; an engine loads a kernel module when it first needs it.
"""
