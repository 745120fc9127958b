"""How good a model is: on folds beside others, on ratings held out, on hidden entries of a known matrix."""
