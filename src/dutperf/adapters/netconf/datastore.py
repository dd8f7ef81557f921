"""A configuration of YANG modules as NETCONF reads and changes it (RFC 6241).

Data are what RFC 7951 makes of them, and yangson judges them by the modules.
"""

from __future__ import annotations

import copy
import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from yangson import DataModel
from yangson.datatype import IdentityrefType
from yangson.enumerations import ContentType
from yangson.exceptions import ValidationError
from yangson.schemanode import (
    ContainerNode,
    DataNode,
    InternalNode,
    LeafNode,
    ListNode,
)

BASE = "urn:ietf:params:xml:ns:netconf:base:1.0"
_LIBRARY = "ietf-yang-library:modules-state"
PREFIX = "prefix"
"""Of a parsed element's text: the namespace that it stands for."""
_STEP = re.compile(r"(?:[^/'\"]|'[^']*'|\"[^\"]*\")+")
"""Of a path; slashes in quotes are none of its own."""
_MOST_LEVELS = 40
_MOST_IN_SCOPE = 40
_MOST_ELEMENTS = 5_000
_OPERATIONS = ("merge", "replace", "create", "delete", "remove")

Raw = dict[str, Any]


class RpcError(Exception):
    """What an ``rpc-error`` tells (RFC 6241 4.3).

    Attributes:
        tag: one of RFC 6241 Appendix A.
        message: for people.
        path: names as in data, outermost first, with the keys of a list's entry.
        info: elements of ``error-info`` and their text.
    """

    def __init__(
        self, tag: str, message: str, path: str = "", info: Mapping[str, str] = {}
    ) -> None:
        super().__init__(message)
        self.tag, self.message, self.path = tag, message, path
        self.info = dict(info)


def unsupported(path: str, what: str) -> RpcError:
    """What the model has and the tester cannot do exactly."""
    return RpcError("operation-not-supported", what, path)


def parsed(message: bytes) -> ET.Element:
    """A message of a stranger, of the size that its reader allows.

    Raises:
        RpcError: it is no XML, or is none that NETCONF has.
    """
    try:
        text = message.decode()
        if "<!DOCTYPE" in text:
            raise RpcError("malformed-message", "has a document type")
        parser: Any = ET.XMLPullParser(("start-ns", "end-ns", "start", "end"))
        parser.feed(text)
        parser.close()
    except (UnicodeDecodeError, ET.ParseError) as error:
        raise RpcError("malformed-message", str(error)) from None
    scope: list[tuple[str, str]] = []
    root: ET.Element | None = None
    levels = elements = 0
    for event, told in parser.read_events():
        if event == "start-ns":
            scope.append(told)
        elif event == "end-ns":
            scope.pop()
        elif event == "start":
            levels, elements = levels + 1, elements + 1
            root = told if root is None else root
        else:
            levels -= 1
            prefix, colon, _ = (told.text or "").strip().partition(":")
            spaces = dict(scope)
            told.attrib.pop(PREFIX, None)
            if space := spaces.get(prefix if colon else ""):
                told.set(PREFIX, space)
        if (
            levels > _MOST_LEVELS
            or elements > _MOST_ELEMENTS
            or len(scope) > _MOST_IN_SCOPE
        ):
            raise RpcError("malformed-message", "has too many elements or namespaces")
    if root is None:
        raise RpcError("malformed-message", "is empty")
    return root


def split(tag: str) -> tuple[str, str]:
    """Namespace and name of an element."""
    space, _, name = tag.rpartition("}")
    return space.removeprefix("{"), name


class Model:
    """The modules in ``yang``, and what can be done with data of them."""

    def __init__(self) -> None:
        folder = Path(__file__).parent / "yang"
        library = (folder / "library.json").read_text("utf-8")
        self._model = DataModel(library, (str(folder),))
        self.library: Raw = {_LIBRARY: json.loads(library)[_LIBRARY]}

    @property
    def capabilities(self) -> Iterator[str]:
        """The modules as a ``hello`` names them (RFC 6020 5.6.4)."""
        for module in self.library[_LIBRARY]["module"]:
            features = ",".join(module.get("feature", ()))
            yield (
                f"{module['namespace']}?module={module['name']}"
                f"&revision={module['revision']}"
                + (f"&features={features}" if features else "")
            )

    def check(self, data: Raw, *, state: bool = False) -> None:
        """Whether that is a whole configuration; or one with its state.

        Raises:
            RpcError: it is not.
        """
        kind = ContentType.all if state else ContentType.config
        try:
            self._model.from_raw(data).validate(ctype=kind)
        except ValidationError as error:
            raise RpcError(
                "invalid-value",
                f"{error.tag}: {error.message or ''}".rstrip(": "),
                error.instance.json_pointer(),
            ) from None

    # edit-config.

    def edited(self, data: Raw, config: ET.Element, default: str) -> Raw:
        """The configuration with what ``config`` asks for (RFC 6241 7.2).

        Raises:
            RpcError: it asks for what cannot be.
        """
        changed = copy.deepcopy(data)
        self._edit(self._model.schema, changed, config, default, "")
        return changed

    def _edit(
        self, node: InternalNode, data: Raw, of: ET.Element, default: str, path: str
    ) -> None:
        for child in of:
            member, found = self._member(node, child, path)
            own = f"{path}/{member}"
            operation = child.get(f"{{{BASE}}}operation", default)
            if operation not in (*_OPERATIONS, default):
                raise RpcError("bad-attribute", f"operation {operation!r}", own)
            if not found.config:
                raise RpcError("invalid-value", "is no configuration", own)
            if isinstance(found, ListNode):
                self._edit_entry(found, data, member, child, operation, own)
            elif isinstance(found, ContainerNode | LeafNode):
                self._edit_one(found, data, member, child, operation, own)
            else:
                raise unsupported(own, "is not there")
            if member in data and _is_void(found, data[member]):
                del data[member]

    def _edit_entry(
        self,
        node: ListNode,
        data: Raw,
        member: str,
        of: ET.Element,
        operation: str,
        path: str,
    ) -> None:
        keys = dict(self._keys(node, of, path))
        path += "".join(f"[{name}={_quoted(value)}]" for name, value in keys.items())
        entries: list[Raw] = data.setdefault(member, [])
        place = next(
            (n for n, e in enumerate(entries) if keys.items() <= e.items()),
            len(entries),
        )
        one = {member: entries[place]} if place < len(entries) else {}
        self._edit_one(node, one, member, of, operation, path)
        entries[place : place + 1] = one.values()

    def _keys(
        self, node: ListNode, of: ET.Element, path: str
    ) -> Iterator[tuple[str, Any]]:
        for name, _ in node.keys:
            found = [child for child in of if split(child.tag)[1] == name]
            if len(found) != 1:
                raise RpcError("missing-element", f"{name} is its key", path)
            member, leaf = self._member(node, found[0], path)
            yield member, self._value(leaf, found[0], f"{path}/{name}")

    def _edit_one(
        self,
        node: DataNode,
        data: Raw,
        member: str,
        of: ET.Element,
        operation: str,
        path: str,
    ) -> None:
        exists = member in data
        if operation == "create" and exists:
            raise RpcError("data-exists", "is there already", path)
        if operation in ("delete", "none") and not exists:
            raise RpcError("data-missing", "is not there", path)
        if operation in ("delete", "remove"):
            data.pop(member, None)
        elif isinstance(node, LeafNode):
            if operation != "none":
                data[member] = self._value(node, of, path)
        else:
            if operation in ("replace", "create"):
                data[member], operation = {}, "merge"
            self._edit(node, data.setdefault(member, {}), of, operation, path)

    def _member(
        self, node: InternalNode, child: ET.Element, path: str
    ) -> tuple[str, DataNode]:
        space, name = split(child.tag)
        module = self._model.schema_data.modules_by_ns.get(space)
        if module is None:
            raise RpcError("unknown-namespace", f"{space!r} of {name}", path)
        ns = module.main_module[0]
        found = node.get_data_child(name, ns)
        if found is None:
            raise RpcError("unknown-element", f"{name} is not there", f"{path}/{name}")
        return (name if ns == node.ns else f"{ns}:{name}"), found

    def _value(self, node: LeafNode, of: ET.Element, path: str) -> Any:  # noqa: ANN401
        """A leaf's, as JSON has it."""
        if len(of):
            raise RpcError("bad-element", "is a leaf", path)
        of.text = (of.text or "").strip()
        try:
            if isinstance(node.type, IdentityrefType):
                value = node.type.from_raw(self._identity(of))
            else:
                value = node.type.from_xml(of)
        except ValueError:
            value = None
        if value is None or value not in node.type:
            raise RpcError("invalid-value", f"{of.text[:80]!r}", path)
        return node.type.to_raw(value)

    def _identity(self, of: ET.Element) -> str:
        """``module:name``: names of XML have prefixes of their own."""
        space = of.get(PREFIX, "")
        module = self._model.schema_data.modules_by_ns.get(space)
        name = (of.text or "").strip().rpartition(":")[2]
        return f"{module.main_module[0]}:{name}" if module else name

    # get and get-config.

    def filtered(self, data: Raw, subtree: ET.Element) -> Raw:
        """What a subtree filter selects (RFC 6241 6)."""
        if not len(subtree):
            return {}
        return self._selected(self._model.schema, data, subtree) or {}

    def _selected(self, node: InternalNode, data: Raw, by: ET.Element) -> Raw | None:
        """None: it does not match."""
        found: Raw = {}
        selects = False
        for asked in by:
            space, name = split(asked.tag)
            named = [
                (member, inner, child)
                for member, inner in data.items()
                if (child := self._child(node, member)).name == name
                and space in ("", self._space(child.ns))
            ]
            text = (asked.text or "").strip()
            if text and not len(asked):
                named = [
                    each for each in named if self._matches(each[2], each[1], asked)
                ]
                if not named:
                    return None
                found |= {member: inner for member, inner, _ in named}
                continue
            selects = True
            for member, inner, child in named:
                kept = self._kept(child, inner, asked)
                if kept not in (None, []):
                    found[member] = kept
        if not selects:
            return data
        if isinstance(node, ListNode) and found:
            found = {key: data[key] for key, _ in node.keys} | found
        return found or None

    def _kept(self, node: DataNode, data: Any, asked: ET.Element) -> Any:  # noqa: ANN401
        if not len(asked):
            return data
        if isinstance(node, ListNode):
            each = (self._selected(node, entry, asked) for entry in data)
            return [entry for entry in each if entry is not None]
        if isinstance(node, InternalNode):
            return self._selected(node, data, asked)
        return None

    def _matches(self, node: DataNode, value: object, asked: ET.Element) -> bool:
        of_type = node.type if isinstance(node, LeafNode) else None
        if isinstance(of_type, IdentityrefType):
            return bool(value == self._identity(asked))
        return str(value) == (asked.text or "").strip()

    # Data as XML.

    def _child(self, node: InternalNode, member: str) -> DataNode:
        module, colon, name = member.rpartition(":")
        return node.get_data_child(name, module if colon else node.ns)

    def _space(self, module: str) -> str:
        return str(self._model.schema_data.modules_by_name[module].xml_namespace)

    def written(self, data: Raw, into: ET.Element) -> None:
        """Put it into an element."""
        self._write(self._model.schema, data, into)

    def _write(self, node: InternalNode, data: Raw, into: ET.Element) -> None:
        for member, value in data.items():
            child = self._child(node, member)
            for each in value if isinstance(value, list) else [value]:
                made = ET.SubElement(into, child.name)
                if child.ns != node.ns:
                    made.set("xmlns", self._space(child.ns))
                if isinstance(each, dict):
                    self._write(child, each, made)
                    continue
                if isinstance(child.type, IdentityrefType):
                    module = str(each).partition(":")[0]
                    made.set(f"xmlns:{module}", self._space(module))
                made.text = str(each).lower() if isinstance(each, bool) else str(each)

    def xpath(self, path: str) -> tuple[str, dict[str, str]]:
        """A path as XPath has it, and the namespaces of its prefixes."""
        text, spaces, module = "", {}, ""
        for step in _STEP.findall(path):
            if step.isdecimal():
                text += f"[{int(step) + 1}]"
                continue
            head, bracket, keys = step.partition("[")
            own, colon, name = head.rpartition(":")
            module = own if colon else module
            spaces[module] = self._space(module)
            keys = keys.replace("[", f"[{module}:")
            text += f"/{module}:{name}" + (f"[{module}:{keys}" if bracket else "")
        return text, spaces


def _quoted(value: object) -> str:
    """As XPath writes it; it has no way to write both marks."""
    text = str(value)
    return f'"{text}"' if "'" in text and '"' not in text else f"'{text}'"


def _is_void(node: DataNode, value: object) -> bool:
    """Nothing is told by it: an empty list, a container that tells none."""
    presence = isinstance(node, ContainerNode) and node.presence
    return value in ([], {}) and not presence
