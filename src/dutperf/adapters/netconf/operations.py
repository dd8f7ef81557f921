"""What a NETCONF server does for its clients (RFC 6241 7), one at a time.

There is one datastore, running, which is written at once; an edit is done whole or not.
"""

from __future__ import annotations

import threading
import xml.etree.ElementTree as ET
from collections.abc import Callable
from datetime import UTC, datetime

from dutperf.adapters.netconf.datastore import (
    BASE,
    PREFIX,
    Model,
    Raw,
    RpcError,
    parsed,
    split,
    unsupported,
)
from dutperf.adapters.netconf.traffic import Sides, with_state
from dutperf.api.tester import Tester
from dutperf.errors import DutperfError, InputError

_LIBRARY = "urn:ietf:params:netconf:capability:yang-library:1.0"
_CAPABILITIES = (
    "urn:ietf:params:netconf:base:1.0",
    "urn:ietf:params:netconf:base:1.1",
    "urn:ietf:params:netconf:capability:writable-running:1.0",
    "urn:ietf:params:netconf:capability:rollback-on-error:1.0",
    f"{_LIBRARY}?revision=2016-06-21&module-set-id=1",
)
_ERROR_OPTIONS = ("stop-on-error", "rollback-on-error")

Element = ET.Element


class Server:
    """A tester whose generators and analyzers are configured by NETCONF."""

    def __init__(self, tester: Tester) -> None:
        self._model = Model()
        self._sides = Sides(tester)
        self._running: Raw = {}
        self._since = datetime.now(UTC).isoformat(timespec="seconds")
        self._holder: int | None = None
        self._lock = threading.Lock()
        self.kill: Callable[[int], bool] = lambda _session: False
        """Ends another session; whether there is one."""

    def hello(self, session: int) -> bytes:
        """What a session begins with."""
        made = ET.Element("hello", xmlns=BASE)
        listed = ET.SubElement(made, "capabilities")
        for each in (*_CAPABILITIES, *self._model.capabilities):
            ET.SubElement(listed, "capability").text = each
        ET.SubElement(made, "session-id").text = str(session)
        return _written(made)

    def answer(self, session: int, message: bytes) -> tuple[bytes, bool]:
        """The reply to a message, and whether the session goes on."""
        reply = ET.Element("rpc-reply", xmlns=BASE)
        goes_on = True
        try:
            operation = _operation(parsed(message), reply)
            goes_on = operation.tag != f"{{{BASE}}}close-session"
            with self._lock:
                self._do(session, operation, reply)
        except RpcError as error:
            self._tell(error, reply)
            goes_on = error.tag != "malformed-message"
        except DutperfError as error:
            text = f"{error.message}; {error.hint}" if error.hint else error.message
            tag = (
                "invalid-value" if isinstance(error, InputError) else "operation-failed"
            )
            self._tell(RpcError(tag, text), reply)
        return _written(reply), goes_on

    def ended(self, session: int) -> None:
        """What it held is free."""
        with self._lock:
            if self._holder == session:
                self._holder = None

    def end(self) -> None:
        """Send no more."""
        self._sides.end()

    def _do(self, session: int, operation: Element, reply: Element) -> None:
        space, name = split(operation.tag)
        known = {
            "get": lambda: self._get(operation, reply),
            "get-config": lambda: self._get_config(operation, reply),
            "edit-config": lambda: self._edit_config(session, operation),
            "lock": lambda: self._take(session, operation),
            "unlock": lambda: self._free(session, operation),
            "close-session": lambda: None,
            "kill-session": lambda: self._kill(session, operation),
        }
        if space != BASE or name not in known:
            raise RpcError("operation-not-supported", f"{name} is not there")
        known[name]()
        if not len(reply):
            ET.SubElement(reply, "ok")

    def _get(self, operation: Element, reply: Element) -> None:
        sides = self._sides.state()
        data = with_state(self._running, sides, self._since) | self._model.library
        self._show(operation, data, reply)
        counts = next(reply.iter("state"), None)
        if counts is not None and (why := self._sides.why_unknown()):
            del reply[:]
            raise RpcError(
                "operation-failed", f"the trial tells nothing of the device: {why}"
            )

    def _get_config(self, operation: Element, reply: Element) -> None:
        _check_running(operation, "source")
        self._show(operation, self._running, reply)

    def _show(self, operation: Element, data: Raw, reply: Element) -> None:
        subtree = operation.find(f"{{{BASE}}}filter")
        if subtree is not None:
            if _plain(subtree, "type", "subtree") != "subtree":
                raise RpcError("bad-attribute", "filters are of type subtree")
            data = self._model.filtered(data, subtree)
        self._model.written(data, ET.SubElement(reply, "data"))

    def _edit_config(self, session: int, operation: Element) -> None:
        _check_running(operation, "target")
        if self._holder not in (None, session):
            raise RpcError("in-use", f"session {self._holder} has locked it")
        default, config = "merge", None
        for told in operation:
            name = split(told.tag)[1]
            text = (told.text or "").strip()
            if name == "default-operation" and text in ("merge", "replace", "none"):
                default = text
            elif name == "config":
                config = told
            elif name != "target" and not (
                name == "error-option" and text in _ERROR_OPTIONS
            ):
                raise RpcError("operation-not-supported", f"{name} {text[:80]}")
        if config is None:
            raise RpcError(
                "missing-element", "no config", info={"bad-element": "config"}
            )
        base = {} if default == "replace" else self._running
        operation_of = "merge" if default == "replace" else default
        changed = self._model.edited(base, config, operation_of)
        self._model.check(changed)
        self._sides.apply(self._running, changed)
        self._running = changed

    def _take(self, session: int, operation: Element) -> None:
        _check_running(operation, "target")
        if self._holder is not None:
            raise RpcError(
                "lock-denied", "is locked", info={"session-id": str(self._holder)}
            )
        self._holder = session

    def _free(self, session: int, operation: Element) -> None:
        _check_running(operation, "target")
        if self._holder != session:
            raise RpcError("operation-failed", "this session has not locked it")
        self._holder = None

    def _kill(self, session: int, operation: Element) -> None:
        told = (operation.findtext(f"{{{BASE}}}session-id") or "").strip()
        other = int(told) if told.isdecimal() and len(told) < 10 else 0
        if other == session or not self.kill(other):
            raise RpcError("invalid-value", f"session-id {told[:20]!r}")
        if self._holder == other:
            self._holder = None

    def _tell(self, error: RpcError, reply: Element) -> None:
        made = ET.SubElement(reply, "rpc-error")
        kind = (
            "rpc" if error.tag.endswith(("-message", "-attribute")) else "application"
        )
        ET.SubElement(made, "error-type").text = kind
        ET.SubElement(made, "error-tag").text = error.tag
        ET.SubElement(made, "error-severity").text = "error"
        if error.path:
            text, spaces = self._model.xpath(error.path)
            path = ET.SubElement(made, "error-path")
            path.text = text
            for prefix, space in spaces.items():
                path.set(f"xmlns:{prefix}", space)
        ET.SubElement(made, "error-message").text = error.message
        if error.info:
            info = ET.SubElement(made, "error-info")
            for key, value in error.info.items():
                ET.SubElement(info, key).text = value


def _check_running(operation: Element, which: str) -> None:
    told = operation.find(f"{{{BASE}}}{which}")
    stores = [] if told is None else [split(each.tag)[1] for each in told]
    if stores != ["running"]:
        raise unsupported(
            "", f"{which} {', '.join(stores) or 'none'}: running is there"
        )


def _plain(element: Element, name: str, default: str) -> str:
    return element.get(name, element.get(f"{{{BASE}}}{name}", default))


def _operation(rpc: Element, reply: Element) -> Element:
    """What an rpc asks for; all of its attributes stand in the reply (RFC 6241 4.2)."""
    if rpc.tag != f"{{{BASE}}}rpc" or len(rpc) != 1:
        raise RpcError("malformed-message", "is no rpc of one operation")
    for name, value in rpc.attrib.items():
        if name != PREFIX:
            reply.set(name, value)
    if "message-id" not in rpc.attrib:
        raise RpcError(
            "missing-attribute",
            "rpc without message-id",
            info={"bad-attribute": "message-id", "bad-element": "rpc"},
        )
    return rpc[0]


def _written(root: Element) -> bytes:
    return ET.tostring(root, "unicode").encode()
