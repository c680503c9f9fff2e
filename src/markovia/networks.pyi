from markovia.factors.networks.recipes import (
    ModuleRecipe as ModuleRecipe,
    gaussian_mlp as gaussian_mlp,
    mlp as mlp,
)
