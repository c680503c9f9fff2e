"""Effects from data: estimators on arrays, one file a family, and the door `effect` that picks among them.

Estimators for treatments of several levels return the means of the potential outcomes (`ArmMeans`), from which
differences, ratios and odds ratios follow in one place (`estimates.contrast`); the others return an `Estimate`.
"""
