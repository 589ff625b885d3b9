"""An example: a dialect and a rule that another package brings to the conversation inspector."""
