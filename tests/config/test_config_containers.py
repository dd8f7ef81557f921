"""The examples of testers in containers fit together: networks, addresses, CPUs."""

from __future__ import annotations

import ipaddress
import json
from itertools import chain
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
from ruamel.yaml import YAML

from dutperf.config import Testbed, from_data, load_testbed

EXAMPLES = Path(__file__).parents[2] / "examples"
PODS, COMPOSE = EXAMPLES / "pods", EXAMPLES / "compose"
NETWORKS = "k8s.v1.cni.cncf.io/networks"
RESOURCE = "k8s.v1.cni.cncf.io/resourceName"
KUBERNETES = "1.37"
SAFE = YAML(typ="safe")


def manifests(name: str) -> list[dict[str, Any]]:
    return list(SAFE.load_all((PODS / f"{name}.yaml").read_text("utf-8")))


def pod(name: str) -> dict[str, Any]:
    return next(each for each in manifests(name) if each["kind"] == "Pod")


def networks() -> dict[str, dict[str, Any]]:
    return {each["metadata"]["name"]: each for each in manifests("networks")}


def used(name: str) -> list[str]:
    listed = pod(name)["metadata"]["annotations"][NETWORKS].split(",")
    return [each.strip().partition("@")[0] for each in listed]


def plugins(network: str) -> list[dict[str, Any]]:
    config = json.loads(networks()[network]["spec"]["config"])
    assert (config["cniVersion"], config["name"]) == ("1.0.0", network)
    found: list[dict[str, Any]] = config.get("plugins", [config])
    return found


def address(network: str) -> ipaddress.IPv4Interface:
    (first,) = plugins(network)[0]["ipam"]["addresses"]
    return ipaddress.IPv4Interface(first["address"])


def filled_testbed() -> Testbed:
    """As the pod makes it, on some CPUs and VFs."""
    config = next(e for e in manifests("tester") if e["kind"] == "ConfigMap")
    text = config["data"]["testbed.yaml"]
    for word, value in {
        "LEFT": "0000:3b:02.0",
        "RIGHT": "0000:3b:0a.0",
        "MAIN": "4",
        "CORES": "5, 6",
    }.items():
        assert f"s/{word}/" in str(pod("tester")["spec"])
        text = text.replace(word, value)
    return from_data(Testbed, SAFE.load(text), "testbed.yaml")


def test_kubernetes_takes_the_manifests() -> None:
    """A network's kind is Multus' own, of which Kubernetes has no schema."""
    for each in chain(manifests("tester"), manifests("router")):
        kubernetes_validate.validate(each, KUBERNETES, strict=True)
    wrong = pod("tester")
    wrong["spec"]["containers"][0]["resources"]["request"] = {}
    with pytest.raises(kubernetes_validate.ValidationError, match="request"):
        kubernetes_validate.validate(wrong, KUBERNETES, strict=True)


@pytest.mark.parametrize("name", ["tester", "router"])
def test_a_pod_has_whole_cpus_and_a_vf_of_each_network(name: str) -> None:
    (container,) = pod(name)["spec"]["containers"]
    wanted = container["resources"]["requests"]
    assert container["resources"]["limits"] == wanted
    assert wanted["cpu"].isdecimal()
    resources = {networks()[n]["metadata"]["annotations"][RESOURCE] for n in used(name)}
    assert resources == {each for each in wanted if each.startswith("example.com/")}
    for each in used(name):
        assert plugins(each)[0]["type"] == "sriov"


def test_the_pods_testbed_is_what_its_router_forwards_between() -> None:
    testbed = filled_testbed()
    (container,) = pod("tester")["spec"]["containers"]
    wanted = container["resources"]["requests"]
    assert int(wanted["cpu"]) == 1 + len(testbed.cores)
    pages_mib = 1024 * int(wanted["hugepages-2Mi"].removesuffix("Gi"))
    assert pages_mib > testbed.memory_mb
    script = "".join(container["args"])
    for network, (name, side) in zip(
        used("tester"), testbed.sides.items(), strict=True
    ):
        assert network.endswith(name)
        resource = networks()[network]["metadata"]["annotations"][RESOURCE]
        variable = resource.upper().replace(".", "_").replace("/", "_")
        assert f"s/{name.upper()}/$PCIDEVICE_{variable}/" in script
        own = address(f"router-{name}")
        assert side.ipv4
        assert side.ipv4.gateway == str(own.ip)
        assert ipaddress.IPv4Address(side.ipv4.address) in own.network
        forwards = {"net.ipv4.ip_forward": "1"}
        assert plugins(f"router-{name}")[1]["sysctl"] == forwards


def test_the_containers_addresses_are_those_of_their_testbed() -> None:
    compose = SAFE.load((COMPOSE / "compose.yaml").read_text("utf-8"))
    testbed = load_testbed(COMPOSE / "testbed.yaml")
    tester, router = compose["services"]["tester"], compose["services"]["router"]
    assert tester["image"] == router["image"]
    assert router["sysctls"] == {"net.ipv4.ip_forward": "1"}
    for name, side in testbed.sides.items():
        ends = [each["networks"][name] for each in (tester, router)]
        assert side.ipv4
        assert [end["ipv4_address"] for end in ends] == [
            side.ipv4.address,
            side.ipv4.gateway,
        ]
        for end in ends:
            assert end["interface_name"] == end["x-podman.interface_name"] == name
        assert side.port.model_dump()["interface"] == name
        (range_,) = compose["networks"][name]["ipam"]["config"]
        hosts = {*(end["ipv4_address"] for end in ends), range_["gateway"]}
        assert len(hosts) == 3
        network = ipaddress.IPv4Network(range_["subnet"])
        assert all(ipaddress.IPv4Address(host) in network for host in hosts)
