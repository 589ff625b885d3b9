"""An example: a dialect, a rule, a form of exports and a storage that another package brings to the inspector."""
