"""PostgreSQL from a wheel, and the processes of `make run`: started, watched and stopped without any service manager.

Nothing here imports Django but `welcome`, and nothing in the product imports this package: a deployment that brings its
own PostgreSQL and its own process manager never loads it.
"""
