"""The agents: workflows over the tools, and the command line that starts them."""
