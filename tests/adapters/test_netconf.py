"""A network tester by NETCONF: driven by ``ncclient``, as its users drive it."""

from __future__ import annotations

import asyncio
import functools
import re
import threading
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import asyncssh
import pytest
from fuzzing import damaged_bytes, seeded
from hypothesis import given
from ncclient import manager
from ncclient.operations import RPCError
from ncclient.transport.errors import AuthenticationError

from dutperf.adapters import netconf
from dutperf.adapters.netconf.datastore import BASE, Model, RpcError, parsed
from dutperf.adapters.netconf.operations import Server
from dutperf.adapters.netconf.traffic import Generator, with_state
from dutperf.api import InputError, Tester
from dutperf.api.frames import FrameTemplate, Load
from dutperf.engine.client import ProgressCallback
from dutperf.protocol.result_messages import TrialResult
from dutperf.protocol.trial_messages import TrialProgress, TrialRequest
from dutperf.simulation.fake_engine import FakeEngine

FPS = 120_000
IF = "urn:ietf:params:xml:ns:yang:ietf-interfaces"
TG = "urn:ietf:params:xml:ns:yang:ietf-traffic-generator"
TA = "urn:ietf:params:xml:ns:yang:ietf-traffic-analyzer"
TYPE = (
    '<type xmlns:i="urn:ietf:params:xml:ns:yang:iana-if-type">i:ethernetCsmacd</type>'
)
TESTFRAME = (
    '<testframe-type xmlns:d="urn:dutperf:yang:testframe">d:testframe</testframe-type>'
)
ANALYZER = f'<traffic-analyzer xmlns="{TA}"/>'
LINE = 1_250_000_000
"""Octets a second of a line with 10 Gbit/s."""


def frame(size: int, src: str = "c6120002", dst: str = "c6130002") -> str:
    """UDP in IPv4 from port 1024 to 7, all of its headers."""
    ip = f"4500{size - 18:04x}0000400040110000{src}{dst}"
    return ("00" * 12 + "0800" + ip + f"04000007{size - 38:04x}0000").upper()


def stream(size: int = 128, gap: int = 100_000, data: str | None = None) -> str:
    told = frame(size) if data is None else data
    return (
        f"{TESTFRAME}<frame-size>{size}</frame-size><frame-data>{told}</frame-data>"
        f"<interframe-gap>{gap}</interframe-gap>"
    )


def generator(inner: str, operation: str = "merge") -> str:
    return (
        f'<traffic-generator xmlns="{TG}" xmlns:nc="{BASE}" '
        f'nc:operation="{operation}">{inner}</traffic-generator>'
    )


def config(**interfaces: str) -> str:
    each = (
        f"<interface><name>{name}</name>{TYPE}{inner}</interface>"
        for name, inner in interfaces.items()
    )
    return (
        f'<config xmlns="{BASE}"><interfaces xmlns="{IF}">{"".join(each)}</interfaces>'
        "</config>"
    )


# By SSH, with a client of other people's.


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With two keys; the server knows one of them."""
    made = tmp_path_factory.mktemp("netconf")
    for name in ("own", "other"):
        key = asyncssh.generate_private_key("ssh-ed25519")
        key.write_private_key(str(made / name))
        key.write_public_key(str(made / f"{name}.pub"))
    return made


@pytest.fixture(scope="module")
def _active() -> Iterator[None]:
    """What is simulated takes no time: a trial of a day lasts until it is stopped."""
    measure = FakeEngine.measure

    def held(
        engine: FakeEngine, trial: TrialRequest, *told: ProgressCallback
    ) -> TrialResult:
        def until_stopped(progress: TrialProgress) -> None:
            for on_progress in told:
                on_progress(progress)
            looks = 3000 if trial.duration_ns > 3600 * 10**9 else 0
            for _ in range(looks):
                if engine._stopped:
                    break
                time.sleep(0.01)

        return measure(engine, trial, until_stopped)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FakeEngine, "measure", held)
        yield


@pytest.fixture(scope="module")
def port(folder: Path, _active: None) -> Iterator[int]:
    told: list[str] = []
    loops: list[asyncio.AbstractEventLoop] = []

    async def serve() -> None:
        loops.append(asyncio.get_running_loop())
        server = Server(Tester(simulated_fps=FPS))
        keys = netconf._authorized(folder / "own.pub")
        try:
            await netconf._serve(server, 0, keys, told.append)
        except asyncio.CancelledError:
            await asyncio.to_thread(server.end)

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    while not told:
        time.sleep(0.01)
    found = re.match(r"\[127\.0\.0\.1\]:(\d+) ssh-ed25519 ", told[0])
    assert found
    yield int(found[1])
    loops[0].call_soon_threadsafe(lambda: [t.cancel() for t in asyncio.all_tasks()])
    thread.join(30)


def connected(port: int, key: Path) -> Any:  # noqa: ANN401
    return manager.connect(
        host="127.0.0.1",
        port=port,
        username="anyone",
        key_filename=str(key),
        hostkey_verify=False,
        allow_agent=False,
        look_for_keys=False,
    )


@pytest.fixture
def client(port: int, folder: Path) -> Iterator[Any]:
    with connected(port, folder / "own") as found:
        yield found
        found.edit_config(
            target="running", config=f'<config xmlns="{BASE}"/>',
            default_operation="replace",
        )  # fmt: skip


def edit(client: Any, **interfaces: str) -> None:  # noqa: ANN401
    client.edit_config(target="running", config=config(**interfaces))


def counted(client: Any, side: str, pkts: int) -> dict[str, int]:  # noqa: ANN401
    """The analyzer's leaves by name, once it has so many."""
    asked = (
        f'<interfaces xmlns="{IF}"><interface><name>{side}</name>{ANALYZER}'
        "</interface></interfaces>"
    )
    for _ in range(600):
        told = ET.fromstring(client.get(filter=("subtree", asked)).xml)  # noqa: S314
        found = {
            each.tag.rpartition("}")[2]: int(each.text)
            for each in told.iter()
            if each.text and each.text.isdecimal()
        }
        if found.get("pkts") == pkts:
            return found
        time.sleep(0.02)
    raise AssertionError(f"{found} and not {pkts}")


def test_what_a_generator_sends_is_counted_by_the_analyzer(client: Any) -> None:  # noqa: ANN401
    edit(client, right=ANALYZER)
    edit(client, left=generator(f"{stream()}<total-frames>500</total-frames>"))
    found = counted(client, "right", 500)
    assert found["octets"] == 500 * 128
    assert (found["testframe-pkts"], found["samples"]) == (500, 500)
    assert (found["errors"], found["sequence-errors"], found["payload-errors"]) == (
        0, 0, 0,
    )  # fmt: skip
    assert 0 < found["min"] <= found["max"]
    edit(client, left=generator("", "delete"))
    edit(client, left=generator(f"{stream()}<total-frames>300</total-frames>"))
    assert counted(client, "right", 800)["octets"] == 800 * 128


def test_counts_are_those_of_dutperf_itself(client: Any) -> None:  # noqa: ANN401
    """A device that loses half of them; the same load by the Python API."""
    sent = 2 * FPS
    template = FrameTemplate.of(bytes.fromhex(frame(128)).ljust(124, b"\0"))
    with Tester(simulated_fps=FPS).frames({"forward": Load([template], 1)}) as frames:
        gap = round(frames.max_rate_fps * 84 / sent) - 128
        load = Generator.of(_told(gap=gap, total=sent), "").load(
            frames.max_rate_fps * 84
        )
        trial = frames.trial({"forward": load}, sent / load.rate_fps)
    (own,) = trial.record.result.directions[0].streams
    edit(
        client,
        right=ANALYZER,
        left=generator(f"{stream(gap=gap)}<total-frames>{sent}</total-frames>"),
    )
    found = counted(client, "right", own.received)
    assert own.sent == sent
    assert 0.4 < own.lost / sent < 0.6
    assert found["samples"] == own.delay_ns.count
    assert (found["min"], found["max"]) == (own.delay_ns.min, own.delay_ns.max)
    assert own.last_loss is not None
    assert found["sequence-errors"] == own.loss_runs.count - (
        own.last_loss.end_ns is None
    )


def test_both_sides_send_until_they_are_deleted(client: Any) -> None:  # noqa: ANN401
    edit(
        client,
        left=generator(stream()) + ANALYZER,
        right=generator(stream(data=frame(128, "c6130002", "c6120002"))) + ANALYZER,
    )
    for wrong, where in (
        ({"left": generator("", "delete")}, "right"),
        ({"left": generator("<total-frames>5</total-frames>")}, "left"),
    ):
        with pytest.raises(RPCError) as refused:
            edit(client, **wrong)
        assert refused.value.tag == "in-use"
        assert f"'{where}'" in refused.value.path
    time.sleep(0.2)
    edit(client, left=generator("", "delete"), right=generator("", "delete"))
    both = [_pkts(client, side) for side in ("left", "right")]
    assert both[0] == both[1] > 1000


def _pkts(client: Any, side: str) -> int:  # noqa: ANN401
    told = ET.fromstring(client.get().xml)  # noqa: S314
    (of,) = [
        each
        for each in told.iter(f"{{{IF}}}interface")
        if each.findtext(f"{{{IF}}}name") == side
    ]
    (found,) = of.iter(f"{{{TA}}}pkts")
    return int(found.text or "")


def test_an_analyzer_comes_before_what_it_counts(client: Any) -> None:  # noqa: ANN401
    edit(client, left=generator(stream()))
    with pytest.raises(RPCError) as refused:
        edit(client, right=ANALYZER)
    assert refused.value.tag == "in-use"
    edit(client, left=generator("", "delete"))
    edit(client, right=ANALYZER)
    assert _pkts(client, "right") == 0


def test_a_lock_is_held_until_its_session_ends(
    client: Any,  # noqa: ANN401
    port: int,
    folder: Path,
) -> None:
    other = connected(port, folder / "own")
    other.lock("running")
    with pytest.raises(RPCError) as refused:
        client.lock("running")
    assert refused.value.tag == "lock-denied"
    with pytest.raises(RPCError) as refused:
        edit(client, right=ANALYZER)
    assert refused.value.tag == "in-use"
    edit(other, left=ANALYZER)
    client.kill_session(other.session_id)
    with client.locked("running"):
        edit(client, right=ANALYZER)
    other._session.close()
    assert not other.connected


def test_who_has_no_key_is_not_heard(port: int, folder: Path) -> None:
    with pytest.raises(AuthenticationError):
        connected(port, folder / "other")


@pytest.mark.parametrize(
    "said",
    [
        b"\n#1000000\n" + b"a" * 999_999 + b"\n#2\n",
        b"\n#99999999999\n",
        b"\n#0\n",
        b"<rpc/>]]>]]>" * 3,
        b"\n#5\n<rpc>\n##\n",
        b"\n#15\n<!DOCTYPE a []>\n##\n",
    ],
    ids=range(6),
)
def test_who_frames_no_message_is_hung_up_on(
    said: bytes, port: int, folder: Path
) -> None:
    hello = (
        f'<hello xmlns="{BASE}"><capabilities><capability>{netconf._BASE_1_1}'
        "</capability></capabilities></hello>]]>]]>"
    )

    async def talk() -> bytes:
        async with (
            asyncssh.connect(
                "127.0.0.1", port, known_hosts=None, client_keys=[str(folder / "own")]
            ) as connection,
            connection.create_process(subsystem="netconf", encoding=None) as process,
        ):
            process.stdin.write(hello.encode() + said)
            return bytes(await asyncio.wait_for(process.stdout.read(), 20))

    answer = asyncio.run(talk())
    assert b"<rpc-reply" not in answer or b"malformed-message" in answer


def test_nothing_but_netconf_is_there(port: int, folder: Path) -> None:
    async def run() -> int | None:
        async with asyncssh.connect(
            "127.0.0.1", port, known_hosts=None, client_keys=[str(folder / "own")]
        ) as connection:
            return (await connection.run("id")).exit_status

    assert asyncio.run(run()) == 1


def test_keys_that_are_none_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("no key\n")
    for name in ("empty", "missing"):
        with pytest.raises(InputError, match="no public keys"):
            netconf.serve_netconf("simulated:1", 0, tmp_path / name, print)


# What the model asks for.


def _told(**keys: Any) -> dict[str, Any]:  # noqa: ANN401
    told = {
        "testframe-type": "dutperf-testframe:testframe",
        "frame-size": keys.pop("size", 128),
        "interframe-gap": keys.pop("gap", 20),
    }
    told["frame-data"] = keys.pop("data", frame(told["frame-size"]))
    if "total" in keys:
        told["total-frames"] = str(keys.pop("total"))
    return told | {key.replace("_", "-"): value for key, value in keys.items()}


def _streams(*streams: dict[str, Any]) -> dict[str, Any]:
    each = [
        {"id": n, "frames-per-stream": 1, "interstream-gap": of["interframe-gap"]} | of
        for n, of in enumerate(streams)
    ]
    return {"streams": {"stream": each}}


@pytest.mark.parametrize(("frames", "gap", "after"), [(1, 20, 90), (7, 52, 5000)])
def test_bursts_begin_when_the_model_says(frames: int, gap: int, after: int) -> None:
    """To half a frame a second, and a nanosecond of each pause."""
    told = _told(gap=gap, frames_per_burst=frames, interburst_gap=after, total=100)
    load = Generator.of(told, "").load(LINE)
    burst, pause = load.steps
    period_ns = burst.duration_ns + pause.duration_ns
    begins, octets = [], 0
    for number in range(100):
        begins.append(Fraction(octets * 10**9, LINE))
        octets += 128 + (after if (number + 1) % frames == 0 else gap)
    for number, begin_ns in enumerate(begins):
        rounds, place = divmod(number, frames)
        due_ns = rounds * period_ns + Fraction(place * 10**9, burst.rate_fps)
        assert abs(due_ns - begin_ns) <= rounds + 1
    assert burst.frames == frames


@pytest.mark.parametrize(
    ("keys", "where"),
    [
        ({"gap": 2**32 - 1}, "/g"),
        ({"frames_per_burst": 2**32 - 1, "interburst_gap": 2**31}, "interburst-gap"),
    ],
)
def test_what_no_line_can_do_is_refused(keys: dict[str, Any], where: str) -> None:
    with pytest.raises(RpcError) as refused:
        Generator.of(_told(gap=keys.pop("gap", 2**29), **keys), "/g").load(LINE)
    assert refused.value.path.endswith(where)


@pytest.mark.parametrize("total", [0, 2**64 - 1])
def test_a_number_of_frames_that_no_trial_has_is_refused(
    server: Server, total: int
) -> None:
    inner = generator(f"{stream()}<total-frames>{total}</total-frames>")
    reply = ask(server, edit_of(config(left=inner)))
    assert tag(reply) == "operation-not-supported"
    path = reply.findtext(f"{{{BASE}}}rpc-error/{{{BASE}}}error-path") or ""
    assert path.endswith(":total-frames")


@pytest.mark.parametrize("total", [1, 6, 7, 8, 50])
def test_a_generator_ends_after_its_frames(total: int) -> None:
    for keys in ({}, {"frames_per_burst": 7, "interburst_gap": 10**6}):
        told = _told(gap=30_000, total=total, **keys)
        of = Generator.of(told, "")
        with Tester(simulated_fps=FPS).frames(
            {"forward": Load(of.templates, 1)}
        ) as frames:
            load = of.load(frames.max_rate_fps * 84)
            lasts_s = of.lasts_s(load)
            assert lasts_s is not None
            trial = frames.trial({"forward": load}, lasts_s)
        assert (trial.intended, trial.sent) == (total, total)


def test_streams_take_turns() -> None:
    sizes = Generator.of(
        _streams(
            _told(size=64, gap=1000) | {"frames-per-stream": 2},
            _told(size=564, gap=500),
        ),
        "",
    ).load(LINE)
    assert list(sizes.sizes) == [64, 64, 564]
    assert sizes.rate_fps == round(LINE / 1064)
    other = _told(data=frame(128, dst="c6130003"))
    two = Generator.of(_streams(_told(), other), "").load(LINE)
    assert (two.share, [t.dst_ip for t in two.templates]) == (
        (1, 2), ["198.19.0.2", "198.19.0.3"],
    )  # fmt: skip


OTHER = _told(data=frame(128, dst="c6130003"))


@pytest.mark.parametrize(
    ("told", "where"),
    [
        (_told(testframe_type="ietf-traffic-generator:dynamic"), "testframe-type"),
        (_told(gap=19), "interframe-gap"),
        (_told(data="00" * 200), "frame-data"),
        (_told(data=frame(100)), "frame-data"),
        (_told(data=""), "frame-data"),
        (_told(size=50), "frame-data"),
        (_told(data="") | {"frame-size": 2**32 - 1}, "frame-size"),
        (_told(interburst_gap=50), "interburst-gap"),
        (_told(interburst_gap=10, frames_per_burst=5), "interburst-gap"),
        (_told(modifiers={"modifier": [{"id": 1}]}), "modifiers"),
        (_told(total=0), "total-frames"),
        (_streams(_told(), _told(gap=21)), "interframe-gap"),
        (_streams(_told() | {"interstream-gap": 50}), "interstream-gap"),
        (_streams(_told() | {"frames-per-stream": 65}), "frames-per-stream"),
        (_streams(_told(frames_per_burst=2, interburst_gap=50)), "frames-per-burst"),
        (_streams(_told() | {"frames-per-stream": 2}, OTHER), "streams"),
        (_streams(_told(), OTHER, _told(data=frame(128, dst="01020304"))), "streams"),
    ],
)
def test_what_cannot_be_done_exactly_is_refused_by_its_path(
    told: dict[str, Any], where: str
) -> None:
    with pytest.raises(RpcError) as refused:
        Generator.of(told, "/g")
    assert refused.value.tag == "operation-not-supported"
    assert refused.value.path.endswith(f"/{where}")


# The protocol, without its transport.


@pytest.fixture(scope="module")
def model() -> Model:
    return Model()


@pytest.fixture(scope="module")
def server() -> Server:
    """One that no test configures."""
    return Server(Tester(simulated_fps=FPS))


def ask(server: Server, operation: str, session: int = 1) -> ET.Element:
    text = f'<rpc xmlns="{BASE}" message-id="1">{operation}</rpc>'
    reply = parsed(server.answer(session, text.encode())[0])
    assert reply.get("message-id") == "1"
    return reply


def tag(reply: ET.Element) -> str | None:
    return reply.findtext(f"{{{BASE}}}rpc-error/{{{BASE}}}error-tag")


def edit_of(inner: str, **keys: str) -> str:
    more = "".join(f"<{k}>{v}</{k}>" for k, v in keys.items())
    return f"<edit-config><target><running/></target>{more}{inner}</edit-config>"


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (edit_of(config(middle="")), "operation-not-supported"),
        (
            edit_of(config(left=generator("<frame-size>1</frame-size>"))),
            "invalid-value",
        ),
        (edit_of(config(left=generator("<no-such/>"))), "unknown-element"),
        (edit_of(config(left="<a xmlns='urn:b'/>")), "unknown-namespace"),
        (edit_of(config(left="<oper-status>up</oper-status>")), "invalid-value"),
        (edit_of(config(left="<enabled>false</enabled>")), "operation-not-supported"),
        (edit_of(config(left=generator("", "delete"))), "data-missing"),
        (edit_of(config(left=generator("", "drop"))), "bad-attribute"),
        (edit_of(config(left="<name>left</name>")), "missing-element"),
        (edit_of(config(left=""), test="x"), "operation-not-supported"),
        (edit_of(""), "missing-element"),
        (edit_of(config(left=generator(stream(data="zz")))), "invalid-value"),
        (
            "<get-config><source><startup/></source></get-config>",
            "operation-not-supported",
        ),
        ("<commit/>", "operation-not-supported"),
        ("<kill-session><session-id>1</session-id></kill-session>", "invalid-value"),
        ("<unlock><target><running/></target></unlock>", "operation-failed"),
        ('<get><filter type="xpath" select="/"/></get>', "bad-attribute"),
    ],
)
def test_what_is_wrong_is_an_error_and_changes_nothing(
    server: Server, operation: str, expected: str
) -> None:
    assert tag(ask(server, operation)) == expected
    assert server._running == {}


def test_edits_merge_replace_and_remove(model: Model) -> None:
    def edited(before: dict[str, Any], inner: str, default: str = "merge") -> Any:  # noqa: ANN401
        text = config(left=inner)
        return model.edited(before, parsed(text.encode()), default)

    one = edited({}, "<description>a</description>")
    (left,) = one["ietf-interfaces:interfaces"]["interface"]
    assert left == {
        "name": "left", "type": "iana-if-type:ethernetCsmacd", "description": "a",
    }  # fmt: skip
    assert edited(one, "<enabled>true</enabled>") != one
    assert edited(one, "<description>b</description>", "none") == one
    replacing = config(left="").replace(
        "<interface>", f'<interface xmlns:n="{BASE}" n:operation="replace">'
    )
    (left,) = model.edited(one, parsed(replacing.encode()), "merge")[
        "ietf-interfaces:interfaces"
    ]["interface"]
    assert "description" not in left
    for operation in ("delete", "remove"):
        text = replacing.replace('"replace"', f'"{operation}"')
        assert model.edited(one, parsed(text.encode()), "merge") == {}
    creating = replacing.replace('"replace"', '"create"')
    with pytest.raises(RpcError) as refused:
        model.edited(one, parsed(creating.encode()), "merge")
    assert refused.value.tag == "data-exists"
    assert model.edited(
        {}, parsed(creating.encode()), "merge"
    ) == edited({}, "")  # fmt: skip


@pytest.mark.parametrize(
    ("subtree", "names", "leaves"),
    [
        ("", [], 0),
        (f'<interfaces xmlns="{IF}"/>', ["left", "right"], 5),
        ("<interfaces/>", ["left", "right"], 5),
        ("<interfaces><interface><name>right</name></interface></interfaces>",
         ["right"], 3),
        ("<interfaces><interface><description/></interface></interfaces>",
         ["right"], 2),
        ("<interfaces><interface><name>x</name></interface></interfaces>", [], 0),
        (f"<interfaces><interface><name/>{TYPE}</interface></interfaces>",
         ["left", "right"], 4),
        ('<interfaces xmlns="urn:other"/>', [], 0),
    ],
)  # fmt: skip
def test_filters_select(
    model: Model, subtree: str, names: list[str], leaves: int
) -> None:
    data = model.edited(
        {},
        parsed(config(left="", right="<description>d</description>").encode()),
        "merge",
    )
    found = model.filtered(data, parsed(f"<filter>{subtree}</filter>".encode()))
    entries = found.get("ietf-interfaces:interfaces", {}).get("interface", [])
    assert [each["name"] for each in entries] == names
    assert sum(map(len, entries)) == leaves


def test_what_is_shown_is_as_the_modules_say(model: Model) -> None:
    server = Server(Tester(simulated_fps=FPS))
    two = config(
        left=generator(f"{stream()}<total-frames>9</total-frames>"), right=ANALYZER
    )
    assert ask(server, edit_of(two)).find(f"{{{BASE}}}ok") is not None
    server._sides.join()
    (state,) = ask(server, "<get/>").iter(f"{{{TA}}}state")
    assert state.findtext(f"{{{TA}}}pkts") == "9"
    shown = with_state(server._running, server._sides.state(), server._since)
    model.check(shown | model.library, state=True)


def test_a_trial_that_tells_nothing_gives_no_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = Server(Tester(simulated_fps=FPS))
    ask(server, edit_of(config(right=ANALYZER)))
    monkeypatch.setattr(server._sides, "why_unknown", lambda: "the sender was late")
    assert tag(ask(server, "<get/>")) == "operation-failed"
    quiet = f'<get><filter><interfaces xmlns="{IF}"><interface><name/></interface>'
    assert tag(ask(server, f"{quiet}</interfaces></filter></get>")) is None


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\xff\xfe<\x00r\x00",
        b"<a>",
        b"<rpc/>",
        b'<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>',
        b"<a>" * 100_000,
        b"<a>" * 50 + b"</a>" * 50,
        b"<a>" + b"<b/>" * 10_000 + b"</a>",
        b"<a " + b" ".join(b'xmlns:p%d="q"' % n for n in range(100)) + b"/>",
        f'<rpc xmlns="{BASE}"><get/></rpc>'.encode(),
    ],
    ids=range(10),
)
def test_what_is_no_message_is_answered_by_an_error(
    server: Server, message: bytes
) -> None:
    reply, goes_on = server.answer(1, message)
    found = tag(parsed(reply))
    assert found in ("malformed-message", "missing-attribute")
    assert goes_on == (found == "missing-attribute")


STREAMS = (
    f"<streams><stream><id>1</id>{stream()}<frames-per-stream>1</frames-per-stream>"
    "<interstream-gap>20</interstream-gap></stream></streams>"
)
SAMPLE = (
    f'<rpc xmlns="{BASE}" message-id="1">'
    f"{edit_of(config(left=generator(STREAMS), right=ANALYZER))}</rpc>"
).encode()


@functools.cache
def fuzzed() -> Server:
    """Nothing is sent by what is found whole."""
    made = Server(Tester(simulated_fps=FPS))
    made._sides._start = lambda _starting: None  # type: ignore[method-assign,assignment]
    return made


@seeded
@given(damaged_bytes([SAMPLE]))
def test_fuzz_messages(message: bytes) -> None:
    fuzzed()._running = {}
    reply, _ = fuzzed().answer(1, message)
    assert parsed(reply).tag == f"{{{BASE}}}rpc-reply"
