"""The library's own errors.

Everything the library refuses is one of these two, so that a caller can catch it, and the
command line can show it, without a traceback. A message names the offender, says what was
expected, and what to do next.
"""


class GnnVpaError(Exception):
    """Something went wrong that a message can explain: a damaged file, a full disk.

    Example:
        >>> try:
        ...     raise GnnVpaError("MUTAG.zip ends early: download it again")
        ... except GnnVpaError as error:
        ...     print(error)
        MUTAG.zip ends early: download it again
    """


class UsageError(GnnVpaError, ValueError):
    """The library was called in a way it cannot serve: an unknown name, a wrong shape.

    It is a ``ValueError`` too, which is what most Python code expects of a wrong argument.

    Example:
        >>> issubclass(UsageError, GnnVpaError), issubclass(UsageError, ValueError)
        (True, True)
    """
