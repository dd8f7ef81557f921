"""What each procedure asks of a device, and what it concludes from the answers.

A module each, named by ``measurements``; beside them what several share: maximum rate
and load (``max_rate``, ``reference_load``, ``offered_maximum``), searches on trials
(``searching``), what counts as lost (``loss_criterion``), what a result says
(``cell_results``, ``conclusions``, ``findings``). They ask for trials (``trials``), and
``run`` runs and stores these; what a user may want to see meanwhile is in ``events``.
"""
