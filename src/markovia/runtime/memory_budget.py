"""How much memory an exact computation may take before it is refused."""

import os

SHARE = 0.8


def default_budget() -> int:
    """Return 80% of the memory that is free now, in bytes."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(int(line.split()[1]) * 1024 * SHARE)
    except OSError:
        pass
    try:
        return int(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") * SHARE / 2)
    except (AttributeError, ValueError, OSError):
        return 2 * 1024**3


def readable(n_bytes: float) -> str:
    """Return a size such as `3.2 GiB`.

    Examples
    --------
    >>> readable(3.2 * 1024**3)
    '3.2 GiB'
    """
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB"):
        if n_bytes < 1024:
            return f"{n_bytes:.3g} {unit}"
        n_bytes /= 1024
    return f"{n_bytes:.3g} EiB"
