"""The commands of the ledger."""
