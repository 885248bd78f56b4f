"""The tool: finds, checks, measures and shows recipes. No recipe imports it."""
