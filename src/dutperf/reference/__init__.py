"""``docs/reference``: what stands in which file, made from the models and commands."""
