"""Rules judged on other people's packages: what they find, what their fixes do, and how often they are right."""
