"""The recipes: one folder a workload, one file a recipe. CONTRIBUTING.md says what goes into each."""
