"""Load and faults for the bot: many deliveries, doubled and out of order, with workers killed meanwhile."""
