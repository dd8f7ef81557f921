"""dutperf as a performance traffic generator of DTS, the test suite of DPDK.

    generator = Generator("testbed.yaml")
    generator.trial(frame, duration=30, send_mpps=None)

``examples/dts/dutperf.py`` is the class that DTS loads. It has this one do the work on
the node of the traffic generator, and gets what DTS asks for: the same packet from both
ports, and how many were sent and came back.
"""

from __future__ import annotations

import struct
from typing import Self

from dutperf.adapters.stl.client import tester_at
from dutperf.api.frames import FrameTemplate, Load, Loads
from dutperf.api.traffic import Trial
from dutperf.errors import InputError, SetupError

_LEAST_BYTES, _GAP, _FCS = 64, 20, 4
_ETHERNET, _IPV4, _UDP_HEADER = 14, 20, 8
_NO_TRANSPORT, _UDP = 0, 17
_PORTS = (49184, 7)
"""RFC 2544 C.2.6.4."""


class Generator:
    """Measures one packet at a time.

    Args:
        server: the file of a testbed, ``lab:NAME`` or ``simulated:FPS``.
        as_udp: an IPv4 packet that carries no transport (DTS's own suites send such)
            is sent as UDP of the same size: the tester accounts for nothing else.
            Without, such a packet is refused.
    """

    def __init__(self, server: str, *, as_udp: bool = False) -> None:
        self._tester = tester_at(server)
        self._as_udp = as_udp

    def __enter__(self) -> Self:
        """Bring a lab up, if it is one."""
        self._tester.__enter__()
        return self

    def __exit__(self, *_error: object) -> None:
        """Take it down."""
        self._tester.__exit__()

    def trial(
        self,
        frame: bytes,
        duration: float,
        send_mpps: float | None = None,
        *,
        named: tuple[str, ...] = ("src_mac", "dst_mac"),
    ) -> dict[str, float]:
        """Send ``frame`` from both ports; rates of both together.

        Args:
            frame: without FCS.
            duration: in seconds.
            send_mpps: of each port, in millions a second; None: the line's.
            named: which MAC addresses of the frame count; others are the ports'.

        Returns:
            ``tx_pps``, ``tx_bps``, ``rx_pps``, ``rx_bps`` and ``frame_size``, as DTS's
            ``PerformanceTrafficStats`` has them; bits of frames without FCS.

        Raises:
            InputError: the packet cannot be sent exactly; names why.
            SetupError: the trial tells nothing of the device.
        """
        template = self._template(frame, named)
        loads = _both_ways(template, 1)
        with self._tester.frames(loads) as frames:
            line_fps = frames.max_rate_fps * (_LEAST_BYTES + _GAP)
            rate = line_fps / (template.frame_size + _GAP)
            if send_mpps is not None:
                rate = send_mpps * 1_000_000
            if rate < 1:
                raise InputError(f"DTS: send_mpps {send_mpps} is no rate", "", "DTS")
            trial = frames.trial(_both_ways(template, int(rate)), duration)
        return _stats(trial, len(frame))

    def _template(self, frame: bytes, named: tuple[str, ...]) -> FrameTemplate:
        sent = _with_udp(frame) if self._as_udp else frame
        template = FrameTemplate.of(sent)
        macs = {key: None for key in ("src_mac", "dst_mac") if key not in named}
        return FrameTemplate(**{**vars(template), **macs})


def _both_ways(template: FrameTemplate, rate_fps: int) -> Loads:
    return {way: Load([template], rate_fps) for way in ("forward", "reverse")}


def _with_udp(frame: bytes) -> bytes:
    """The same frame with UDP behind its IPv4 header, if nothing is there."""
    headers = _ETHERNET + _IPV4
    plain = len(frame) >= headers + _UDP_HEADER and frame[12:15] == b"\x08\x00\x45"
    if not plain or frame[_ETHERNET + 9] != _NO_TRANSPORT:
        return frame
    changed = bytearray(frame)
    changed[_ETHERNET + 9] = _UDP
    struct.pack_into("!HHHH", changed, headers, *_PORTS, len(frame) - headers, 0)
    return bytes(changed)


def _stats(trial: Trial, frame_bytes: int) -> dict[str, float]:
    if trial.verdict == "invalid":
        raise SetupError(
            "DTS: the trial tells nothing of the device: "
            + "; ".join(reason.message for reason in trial.reasons),
            "; ".join(dict.fromkeys(r.hint for r in trial.reasons if r.hint)),
        )
    tx_pps, rx_pps = (n / trial.duration_s for n in (trial.sent, trial.received))
    bits = frame_bytes * 8
    return {
        "tx_pps": tx_pps,
        "tx_bps": tx_pps * bits,
        "rx_pps": rx_pps,
        "rx_bps": rx_pps * bits,
        "frame_size": frame_bytes,
    }
