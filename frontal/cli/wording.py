"""Messages of the library, with options of the command line in place of arguments."""

from __future__ import annotations

import re
from collections.abc import Collection

_ARGUMENT = re.compile(r"\b([a-z_]+)=('[^']*'|\w+)")
_CALL = re.compile(r"\w\(")
_SEPARATOR = re.compile(r", (?:or )?(?![^(]*\))| or (?=[a-z_]+=)(?![^(]*\))")


def as_options(message: str, options: Collection[str]) -> str:
    """Return a message without advice that the options of a command cannot follow.

    Parameters
    ----------
    message : str
        Text of an error or a warning.
    options : collection of str
        Arguments of the library that are options of the command. Sentences and items of advice
        with other arguments, or with calls, are left out.

    Examples
    --------
    >>> as_options("it is singular. Try: other values, or singular='allow'", {"kind"})
    'it is singular. Try: other values'
    >>> as_options("it is indefinite. Try: kind='symmetric' or kind='general'", {"kind"})
    'it is indefinite. Try: --kind symmetric or --kind general'
    """
    statement, separator, advice = message.partition("Try: ")
    first, *sentences = statement.split(". ")
    statement = ". ".join([first, *(s for s in sentences if _has_only(s, options))])
    if separator and not _has_only(advice, options):
        items = [item for item in _SEPARATOR.split(advice) if _has_only(item, options)]
        advice = f"{', '.join(items[:-1])} or {items[-1]}" if len(items) > 1 else "".join(items)
    text = f"{statement}Try: {advice}" if advice else statement.rstrip(". ")
    return _ARGUMENT.sub(lambda match: _option(match, options), text)


def _has_only(text: str, options: Collection[str]) -> bool:
    """Return whether a text has no call, and no argument except these options."""
    return not _CALL.search(text) and {name for name, _ in _ARGUMENT.findall(text)} <= set(options)


def _option(match: re.Match[str], options: Collection[str]) -> str:
    name, value = match.groups()
    return f"--{name} {value.strip(chr(39))}" if name in options else match[0]
