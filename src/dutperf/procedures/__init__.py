"""One module per RFC procedure, and what runs them one after another.

``executor`` takes a campaign to its results; ``throughput`` and ``frame_loss`` say what
is measured; ``runner`` runs and stores each trial; ``session`` gets an engine ready;
``traffic`` says what a trial's frames look like. Everything that a user may want to
see while it happens is an event (``events``).
"""
