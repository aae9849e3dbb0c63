"""What this machine is and how its processes work together."""
