"""What pages consist of: one cell in words, its trials, and charts of them as data.

Made of what is stored; nothing here knows a procedure.
"""
