"""Class conditionals, label propagation, calibration, bias/variance."""
