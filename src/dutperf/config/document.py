"""A YAML file as plain data that still knows on which line each key stands.

YAML 1.2 through ruamel.yaml's round-trip loader, so ``no`` is a text and 010 is ten.
Whatever the file holds, the only exception that leaves this module is InputError.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.constructor import ConstructorError, DuplicateKeyError
from ruamel.yaml.error import MarkedYAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.reader import ReaderError
from ruamel.yaml.scalarbool import ScalarBoolean

from dutperf.errors import InputError
from dutperf.model.fields import (
    CampaignError,
    Keys,
    Problem,
    dotted,
    printable,
    shortened,
)
from dutperf.plain_files import is_nested_too_deeply, read_plain

_LARGEST_FILE_BYTES = 100_000
LARGEST_STORED_BYTES = 1_000_000
"""With what was read of captures, in each of its test cases."""
_DEEPEST = 20
_MOST_VALUES = 100_000  # an alias may multiply what a small file holds
_LARGEST_NUMBER = 2**63
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_START_FROM = "start from one of the files in examples/"


@dataclass(frozen=True)
class Document:
    """``data`` is made of dict, list, str, int, float, bool and None only."""

    name: str
    data: dict[str, Any]
    tree: CommentedMap | None = None

    def line(self, keys: Keys) -> int | None:
        """Line of the value at ``keys``, or of the innermost block that exists."""
        node: Any = self.tree
        line = 1 if node is not None else None
        for key in keys:
            positions = getattr(getattr(node, "lc", None), "data", None) or {}
            if key in positions:
                line = positions[key][0] + 1
            try:
                node = node[key]
            except (KeyError, IndexError, TypeError):
                break
        return line

    def told(self, problem: Problem) -> str:
        """``problem`` as a sentence that says where it is."""
        line = self.line(problem.keys)
        parts = [self.name if line is None else f"{self.name}:{line}"]
        parts += [self.called(problem.keys)] if problem.keys else []
        return ": ".join([*parts, problem.what])

    def called(self, keys: Keys) -> str:
        """How ``keys`` are written here."""
        return dotted(keys)


@contextmanager
def located(path: Path) -> Iterator[None]:
    """Inside, what is wrong with the campaign in the file at ``path`` has a line.

    Raises:
        InputError: instead of a CampaignError.
    """
    try:
        yield
    except CampaignError as error:
        raise refusal(read_document(path), [error.problem]) from None


def shown(value: object) -> str:
    """``value`` as a message quotes it: short, on one line, nothing unprintable."""
    if value is None:
        return "empty"
    if isinstance(value, dict):
        return "a block of keys"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float) and not abs(value) < _LARGEST_NUMBER:
        return "a number out of all bounds"
    return (
        shortened(repr(value)) if isinstance(value, str | int | float) else "compound"
    )


def read_document(path: Path, most_bytes: int = _LARGEST_FILE_BYTES) -> Document:
    """The file at ``path``, of at most ``most_bytes``.

    Raises:
        InputError: it cannot be read, is not YAML, or is not a block of keys.
    """
    tree = _parse(str(path), _read(path, most_bytes))
    if tree is None:
        raise InputError(f"{path}: the file is empty", _START_FROM)
    if not isinstance(tree, CommentedMap):
        kind = "a list" if isinstance(tree, CommentedSeq) else "a single value"
        raise InputError(
            f"{path}:1: must be a block of keys ('name: ...'), not {kind}", _START_FROM
        )
    return Document(str(path), _Plain(str(path), tree).block(tree, ()), tree)


def _read(path: Path, most_bytes: int) -> str:
    try:
        content = read_plain(path, most_bytes + 1)
        if len(content) > most_bytes:
            raise InputError(f"{path}: larger than {most_bytes} bytes", _START_FROM)
        return content.decode("utf-8-sig")
    except FileNotFoundError:
        raise InputError(
            f"{path}: no such file", f"check the path, or {_START_FROM}"
        ) from None
    except IsADirectoryError:
        raise InputError(f"{path}: is a directory", "name a file in it") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: not a text file (UTF-8)", _START_FROM) from None
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read: {error.strerror}", "check path and permissions"
        ) from None


def _parse(name: str, text: str) -> Any:  # noqa: ANN401 - whatever YAML holds
    if is_nested_too_deeply(text):
        raise InputError(f"{name}: nested too deeply", _START_FROM)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # hints for programmers, not for users
            _refuse_compound_keys(YAML(typ="rt", pure=True).compose(text))
            return YAML(typ="rt", pure=True).load(text)
    except DuplicateKeyError as error:
        raise _duplicate(name, error) from None
    except MarkedYAMLError as error:
        raise _syntax(name, error) from None
    except ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise InputError(
            f"{name}:{line}: not a text file: it has a control character",
            _START_FROM,
        ) from None
    except RecursionError:
        raise InputError(f"{name}: nested too deeply", _START_FROM) from None
    except Exception as error:  # noqa: BLE001 - see below
        # Odd scalars (a date 2001-99-99, an integer of 5,000 digits, a bad tag)
        # make ruamel.yaml raise whatever Python raises; a user must not see it.
        raise InputError(
            f"{name}: not valid YAML: {shown(str(error))}",
            "look for values that should be in quotes",
        ) from None


def _refuse_compound_keys(root: Node | None) -> None:
    """Of ``{{{...}}}`` ruamel.yaml makes each level several times: hours for twenty.

    Raises:
        ConstructorError: at the first key that is a block or a list.
    """
    waiting, seen = [root], set()
    while waiting:
        node = waiting.pop()
        if id(node) in seen:  # an alias
            continue
        seen.add(id(node))
        if isinstance(node, MappingNode):
            for key, value in node.value:
                if not isinstance(key, ScalarNode):
                    what = "a key is compound, not a text; put it in quotes"
                    raise ConstructorError(None, None, what, key.start_mark)
                waiting.append(value)
        elif isinstance(node, SequenceNode):
            waiting += node.value


def _duplicate(name: str, error: DuplicateKeyError) -> InputError:
    found = re.search(r'duplicate key "(.*?)" with value', error.problem or "", re.S)
    key = printable(found[1]) if found else "a key"
    return InputError(
        f"{name}:{_marked_line(error)}: {key}: the key is given twice",
        "keep one of the two",
    )


def _syntax(name: str, error: MarkedYAMLError) -> InputError:
    what = error.problem or error.context or "syntax error"
    hint = "check indentation, colons and quotes at and above this line"
    if "\\t" in what:
        hint = "indent with spaces; YAML does not allow tabs"
    return InputError(f"{name}:{_marked_line(error)}: not valid YAML: {what}", hint)


def _marked_line(error: MarkedYAMLError) -> int:
    mark = error.problem_mark or error.context_mark
    return mark.line + 1 if mark else 1


class _Plain:
    """Turns a round-trip tree into plain data, within limits."""

    def __init__(self, name: str, tree: CommentedMap) -> None:
        self._document = Document(name, {}, tree)
        self._left = _MOST_VALUES

    def block(self, node: CommentedMap, keys: Keys) -> dict[str, Any]:
        for key in node:
            if not isinstance(key, str):
                what = f"a key is {shown(key)}, not a text; put it in quotes"
                raise self._error(keys, what)
        return {str(k): self._value(v, (*keys, str(k))) for k, v in node.items()}

    def _value(self, node: Any, keys: Keys) -> Any:  # noqa: ANN401 - any YAML value
        self._left -= 1
        if len(keys) > _DEEPEST or self._left < 0:
            raise self._error(keys[:3], "is nested too deeply or repeated too often")
        if isinstance(node, CommentedMap):
            return self.block(node, keys)
        if isinstance(node, CommentedSeq):
            return [self._value(v, (*keys, n)) for n, v in enumerate(node)]
        return self._scalar(node, keys)

    def _scalar(self, node: Any, keys: Keys) -> Any:  # noqa: ANN401 - any YAML value
        if node is None or isinstance(node, bool):
            return node
        if isinstance(node, ScalarBoolean):  # a true with an anchor
            return bool(node)
        if isinstance(node, int):
            return self._number(int(node), keys)
        if isinstance(node, float):
            return self._number(float(node), keys)
        if isinstance(node, str):
            return self._text(str(node), keys)
        raise self._error(
            keys, "is a date, a set or a tagged value; put it in quotes if it is a text"
        )

    def _number(self, number: float, keys: Keys) -> float:
        if not abs(number) < _LARGEST_NUMBER:  # also true of nan
            raise self._error(keys, "is a number out of all bounds")
        return number

    def _text(self, text: str, keys: Keys) -> str:
        if _CONTROL.search(text):
            raise self._error(keys, f"has a control character: {shown(text)}")
        return text

    def _error(self, keys: Keys, what: str) -> InputError:
        return refusal(self._document, [Problem(keys, what)])


def refusal(document: Document, problems: Sequence[Problem]) -> InputError:
    """One error that names the first ten ``problems`` in the order of their lines."""
    ordered = sorted(problems, key=lambda p: document.line(p.keys) or 0)
    lines = [document.told(problem) for problem in ordered[:10]]
    if len(ordered) > len(lines):
        lines.append(f"... and {len(ordered) - len(lines)} more")
    hints = [problem.hint for problem in ordered[:10] if problem.hint]
    where = dotted(ordered[0].keys) if ordered else ""
    return InputError(_each_once(lines), _each_once(hints), where)


def _each_once(lines: Iterable[str]) -> str:
    return "\n".join(dict.fromkeys(lines))
