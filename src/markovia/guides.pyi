from markovia.factors.functions.amortised_guide import AmortisedGuide as Amortised  # noqa: F401
