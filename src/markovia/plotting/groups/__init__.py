"""Pictures of hidden groups: clusters, partitions, topics, random processes."""
