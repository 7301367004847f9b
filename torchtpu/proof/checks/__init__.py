"""What is compared, one file a stage: each yields the problems it sees, the first cause in front."""
