"""Tasks, benchmarks and runs over real repositories that measure the agent."""
