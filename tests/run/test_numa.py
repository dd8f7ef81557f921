from __future__ import annotations

from pathlib import Path

import pytest
from planning import TESTBED

from dutperf.protocol.port_messages import PortsResult
from dutperf.run.engine_session import far_cores, port_specs
from dutperf.simulation.fake_engine import FakeEngine, perfect


@pytest.fixture
def nodes(tmp_path: Path) -> Path:
    for name, cpus in (("node0", "0-3,8\n"), ("node1", "4-7\n"), ("node2", "\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "cpulist").write_text(cpus)
    return tmp_path


def ports(*numa_nodes: int | None) -> PortsResult:
    opened = FakeEngine(perfect()).open_ports(port_specs(TESTBED, "af_packet"))
    placed = [
        port.model_copy(update={"numa_node": node})
        for port, node in zip(opened.ports, numa_nodes, strict=True)
    ]
    return PortsResult(ports=placed)


@pytest.mark.parametrize("cores", [[4], [4, 5, 6, 7]])
def test_cores_on_the_ports_node_give_no_notice(nodes: Path, cores: list[int]) -> None:
    assert list(far_cores(ports(1, 1), cores, nodes)) == []


def test_cores_on_another_node_are_named(nodes: Path) -> None:
    [notice] = far_cores(ports(1, 0), [0, 8], nodes)
    assert notice.startswith("the left port is on NUMA node 1, but not these cores:")
    assert "0 (node 0), 8 (node 0)" in notice


def test_a_port_that_is_on_no_node_is_near_all_cores(nodes: Path) -> None:
    assert list(far_cores(ports(None, None), [0, 4], nodes)) == []


def test_a_machine_that_does_not_tell_its_nodes_gives_no_notice(tmp_path: Path) -> None:
    assert list(far_cores(ports(0, 1), [0], tmp_path)) == []
