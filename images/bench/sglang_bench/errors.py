class BenchError(Exception):
    """What a user can put right. The text is all that is shown."""
