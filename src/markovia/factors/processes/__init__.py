"""Laws of random measures, partitions and binary matrices."""
