"""Harwell-Boeing files read item by item, as Fortran's formatted input does, in plain Python."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np

from tests.input.reference_reader import RefusedError, integer, mirrored, number, require

SYMMETRIES = {"S": "symmetric", "Z": "skew-symmetric", "H": "hermitian"}
EDIT = re.compile(
    r"([+-]?\d+)P|(\d*)([IFEDGQ])(\d+)(?:\.(\d+)(?:E\d+)?)?|(\d*)X|T([LR]?)(\d+)"
    r"|(\d*)\(|(\)|/|:|S[PS]?|BN)|(,)"
)


def unfold(text):
    """Return the edit descriptors of a format, and those with which it begins again."""
    text = "".join(text.upper().split())
    require(text.startswith("("))
    place, stack, again = 1, [(1, [], 0)], None
    while stack:
        match = EDIT.match(text, place)
        require(match, text)
        place = match.end()
        scale, repeat, kind, width, decimals, skip, way, column, group, mark, comma = match.groups()
        if group is not None:
            stack.append((int(group or 1), [], len(stack[-1][1])))
        elif mark == ")":
            count, items, begin = stack.pop()
            if not stack:
                break
            require(any(item[0] == "field" for item in items))
            require(count * len(items) < 10_000)
            if len(stack) == 1:
                again = begin
            stack[-1][1].extend(items * max(count, 1))
        elif kind:
            require(int(repeat or 1) * int(width) <= 1000 and int(width) > 0)
            whole = kind == "I" or (kind == "G" and not decimals)
            field = ("field", int(width), 0 if whole else int(decimals or 0), whole)
            stack[-1][1].extend([field] * int(repeat or 1))
        elif scale:
            stack[-1][1].append(("scale", int(scale)))
        elif skip is not None:
            stack[-1][1].append(("R", int(skip or 1)))
        elif column:
            stack[-1][1].append((way or "T", int(column)))
        elif mark == "/":
            stack[-1][1].append(("line",))
        require(not comma or text[place : place + 1] != ",")
    require(place == len(text))
    again = items[again:] if again is not None else items
    require(any(item[0] == "field" for item in again))
    return items, again


def read(lines, text, size, ended, separated=False):
    """Return `size` numbers; `ended` tells whether the last line has its end."""
    items, again = unfold(text)
    values, scale, rows, queue = [], 0, iter(enumerate(lines)), list(items)
    if size == 0:
        require(not "".join(lines).strip(" "))
        return values
    k, line = next(rows, (0, None))
    require(line is not None)
    column = used = 0
    words = re.findall("[^ ]+", line)
    while len(values) < size:
        if not queue or queue[0][0] == "line":
            require(not (words if separated else line[used:].strip(" ")))
            k, line = next(rows, (0, None))
            require(line is not None)
            column, used, words = 0, 0, re.findall("[^ ]+", line)
            queue = queue[1:] if queue else list(again)
            continue
        what, *numbers = queue.pop(0)
        if what == "scale":
            scale = numbers[0]
        elif what == "T":
            column = max(numbers[0] - 1, 0)
        elif what in "LR":
            column = max(column + (numbers[0] if what == "R" else -numbers[0]), 0)
        else:
            width, decimals, whole = numbers
            last = k == len(lines) - 1 and not ended
            if separated:
                require(words)
                token = words.pop(0)
                require(whole or "." in token)
                require(not (last and not words and line.endswith(token)))
            else:
                require(not (last and column + width > len(line)))
                token = line[column : column + width].strip(" ")
            column += width
            used = min(column, len(line))
            value = number(token, decimals, scale) if not whole and token else 0.0
            values.append(float(integer(token)) if whole and token else value)
    require(not (words if separated else line[used:].strip(" ")))
    require(all(not line.strip(" ") for _, line in rows))
    return values


def section(lines, text, size, ended):
    """Return the numbers of a section by its columns, or else by blanks between numbers."""
    try:
        return read(lines, text, size, ended)
    except RefusedError:
        return read(lines, text, size, ended, separated=True)


def count(field):
    """Return a number of the header."""
    require(re.fullmatch(r"\d*", field.strip(), re.ASCII))
    return int(field.strip() or 0)


def harwell_boeing(data):
    """Return the dense matrix of a file."""
    ended = data.endswith(b"\n")
    lines = data.decode("latin-1").split("\n")
    lines = [line.removesuffix("\r") for line in (lines[:-1] if ended else lines)]
    require(len(lines) >= 4)
    lengths = [count(lines[1][14 * k : 14 * k + 14]) for k in range(5)][1:]
    rows, columns, nnz, elemental = (count(lines[2][14 * k : 14 * k + 14]) for k in range(1, 5))
    kind = lines[2][:3].upper()
    require(len(kind) == 3 and kind[0] in "RCIP" and kind[1] in "SUHZR" and kind[2] == "A")
    require(not elemental and kind[:2] != "PZ" and max(rows, columns, nnz) < 1000)
    require(rows == columns or kind[1] in "UR")
    formats = [lines[3][:16], lines[3][16:32], lines[3][32:52]]
    sizes = columns + 1, nnz, 0 if kind[0] == "P" else nnz * (1 + (kind[0] == "C"))
    begin, parts = 4 + (lengths[3] > 0), []
    require(begin + sum(lengths) <= len(lines))
    require(not "".join(lines[begin + sum(lengths) :]).strip(" \x1a"))
    for k in range(3):
        part = lines[begin : begin + lengths[k]]
        begin += lengths[k]
        if sizes[k] == 0:
            require(not "".join(part).strip(" "))
            parts.append([])
            continue
        fields = [item for half in unfold(formats[k]) for item in half if item[0] == "field"]
        require(k == 2 or all(item[3] for item in fields))
        parts.append(section(part, formats[k], sizes[k], ended or begin < len(lines)))
    return assembled(kind, (rows, columns), *parts)


def assembled(kind, shape, pointers, indices, values):
    """Return the dense matrix of the three sections."""
    pointers, indices = [int(x) - 1 for x in pointers], [int(x) - 1 for x in indices]
    require(pointers[0] == 0 and pointers[-1] == len(indices))
    require(all(a <= b for a, b in pairwise(pointers)))
    if kind[0] == "C":
        values = np.array(values).view(complex).tolist()
    A, sides = np.zeros(shape, complex if kind[0] == "C" else float), set()
    for j in range(shape[1]):
        for k in range(pointers[j], pointers[j + 1]):
            i, value = indices[k], 1.0 if kind[0] == "P" else values[k]
            require(0 <= i < shape[0])
            require(i != j or kind[1] != "Z" or value == 0)
            require(i != j or kind[1] != "H" or value.imag == 0)
            sides.add(np.sign(i - j))
            A[i, j] += value
    if kind[1] in "UR":
        return A
    require(len(sides - {0}) < 2)
    return mirrored(A, SYMMETRIES[kind[1]])
