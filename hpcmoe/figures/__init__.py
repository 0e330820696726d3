"""The study's figures, drawn from its data with matplotlib (the extra ``figures``).

Importing the package needs no matplotlib: :mod:`hpcmoe.figures.collection` does, and where nodes of a
topology stand (:mod:`hpcmoe.figures.layout`) is wanted without it too.
"""
