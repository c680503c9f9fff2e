"""Sources of kernels for the GPU; CuPy compiles them when they are first needed (`markovia.runtime.devices`)."""
