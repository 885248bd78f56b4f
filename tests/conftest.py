import pytest

from gpu_cookbook import catalogue, machine


def recipes(*keep):
    """Test parameters: every recipe, those that cannot run here marked as skipped with the tool's own reason."""
    return [
        pytest.param(
            recipe,
            id=f"{recipe.workload}-{recipe.technique}",
            marks=[pytest.mark.skip(reason=reason)] if (reason := machine.obstacle(recipe)) else [],
        )
        for recipe in catalogue.recipes()
        if all(test(recipe) for test in keep)
    ]
