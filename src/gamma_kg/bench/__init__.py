"""`gamma bench`: how fast this machine is, as ratios measured in one run."""
