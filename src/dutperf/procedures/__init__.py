"""One module per RFC procedure, and what runs them one after another.

``executor`` takes a campaign to its results; ``throughput``, ``frame_loss``,
``latency``, ``pdv`` and ``ipdv`` say what is measured (``fixed_load`` and ``measures``
do what the last three share, ``judgement`` says what counts as lost); ``runner`` runs
and stores each trial; ``session`` gets an engine ready;
``traffic`` says what a trial's frames look like. Everything that a user may want to
see while it happens is an event (``events``).
"""
