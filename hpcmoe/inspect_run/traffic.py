"""Bytes, packets and times of flows on the links they cross."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hpcmoe.inspect_run.record import Flow, RunRecord

_DATA_HEADER, _ACK = 36, 48  # bytes on the wire without in-band telemetry
_HPCC = 3
_TELEMETRY = {_HPCC: 42, 7: 8, 10: 2}  # bytes of it by cc_mode
_HPCC_ACK = 76
_NS = 10**9

LINK_KINDS = {
    frozenset({"nic", "tor"}): "NIC link",
    frozenset({"nic", "cpu"}): "NIC attachment",
    frozenset({"nic", "pcie"}): "NIC attachment",
    frozenset({"pcie"}): "inter-switch link",
    frozenset({"cpu"}): "UPI link",
}


def link_kind(first: str, second: str, fabric_ends: int = 0) -> str:
    """What a link between nodes of two kinds is called. ``fabric_ends``: how many are outside of servers."""
    ends = frozenset({first, second})
    if "gpu" in ends:
        return "GPU link"
    return LINK_KINDS.get(ends) or ("link", "NIC link", "fabric link")[fabric_ends]


def tx_ns(size_bytes: int, rate_bps: int) -> int:
    """Time of one packet on a link, rounded to the nearest ns."""
    return (size_bytes * 8 * _NS + rate_bps // 2) // rate_bps


@dataclass(frozen=True)
class Ideal:
    """Least time of a flow alone on its path: packets one behind the other through every link and the last
    acknowledgement back; two times every delay."""

    serialization_ns: int
    propagation_ns: int

    @property
    def total_ns(self) -> int:
        return self.serialization_ns + self.propagation_ns


class Traffic:
    """Paths, sizes and least times of the flows of a run."""

    def __init__(self, record: RunRecord) -> None:
        self.record = record
        self.topology = record.topology
        network = record.config["network"]
        self._payload = int(network["payload_bytes"])
        self._mode = int(network["cc_mode"])
        self._local_telemetry = bool(network["local_int"])
        self._ideals: dict[tuple[int, ...], Ideal] = {}

    def path(self, flow: Flow) -> tuple[int, ...]:
        """Directed links that the flow's data crosses."""
        return self.record.routes.data_path(flow.src, flow.dst, flow.sport)

    def ack_path(self, flow: Flow) -> tuple[int, ...]:
        return self.record.routes.ack_path(flow.src, flow.dst, flow.sport)

    def rate_bps(self, link: int) -> int:
        return self.topology.links[link // 2].rate_bps

    def delay_ns(self, link: int) -> int:
        return self.topology.links[link // 2].delay_ns

    def name(self, link: int) -> str:
        """Sending and receiving node of a directed link by name."""
        src, dst = self.record.routes.ends[link]
        names = self.topology.node_names
        return f"{names[src]} → {names[dst]}"

    def kind(self, link: int) -> str:
        src, dst = self.record.routes.ends[link]
        outside = sum(node in self._fabric for node in (src, dst))
        return link_kind(self.topology.node_kinds[src], self.topology.node_kinds[dst], outside)

    @cached_property
    def _fabric(self) -> frozenset[int]:
        return frozenset(self.topology.fabric_ids)

    def is_local(self, flow: Flow) -> bool:
        """Whether both ends are in one server."""
        servers = self.topology.server_of_host
        return bool(servers) and servers[flow.src] == servers[flow.dst]

    def packets(self, flow: Flow) -> tuple[int, int, int]:
        """Number of data packets, wire bytes of a full one and of the last one."""
        header = self._header(flow)
        count = -(-flow.bytes // self._payload)
        last = flow.bytes - (count - 1) * self._payload + header
        return count, min(flow.bytes, self._payload) + header, last

    def _header(self, flow: Flow) -> int:
        return _DATA_HEADER + (_TELEMETRY.get(self._mode, 0) if self._has_telemetry(flow) else 0)

    def _has_telemetry(self, flow: Flow) -> bool:
        return self._local_telemetry or not self.is_local(flow)

    def wire_bytes(self, flow: Flow) -> int:
        count, full, last = self.packets(flow)
        return (count - 1) * full + last

    def ideal(self, flow: Flow) -> Ideal:
        path, back = self.path(flow), self.ack_path(flow)
        key = (flow.bytes, self._header(flow), *path, -1, *back)
        if key not in self._ideals:
            self._ideals[key] = self._ideal(flow, path, back)
        return self._ideals[key]

    def _ideal(self, flow: Flow, path: tuple[int, ...], back: tuple[int, ...]) -> Ideal:
        count, full, last = self.packets(flow)
        ahead, end = self._data_times([self.rate_bps(link) for link in path], count, full, last)
        ack = _HPCC_ACK if self._mode == _HPCC and self._has_telemetry(flow) else _ACK
        for link in back:  # the acknowledgement before the last one may still be in the way
            time = tx_ns(ack, self.rate_bps(link))
            ahead += time
            end = max(end, ahead if count > 1 else 0) + time
        return Ideal(end, sum(self.delay_ns(link) for link in (*path, *back)))

    @staticmethod
    def _data_times(rates: list[int], count: int, full: int, last: int) -> tuple[int, int]:
        """When the packet before the last one and the last one leave the path's last link, delays left
        out. Equal packets leave link k at the sum of their times so far, plus the largest of them for
        every packet ahead."""
        so_far = largest = ahead = end = 0
        for rate in rates:
            time = tx_ns(full, rate)
            so_far, largest = so_far + time, max(largest, time)
            ahead = so_far + (count - 2) * largest if count > 1 else 0
            end = max(end, ahead) + tx_ns(last, rate)
        return ahead, end

    # --- pauses -------------------------------------------------------------------------------------

    @cached_property
    def pauses(self) -> dict[tuple[int, int], np.ndarray]:
        """Per (node, peer): pause intervals of that sending side, [n, 2] in ns."""
        open_since: dict[tuple[int, int], int] = {}
        found: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for row in self.record.pfc:
            link, time_ns = (int(row["node"]), int(row["peer"])), int(row["time_ns"])
            if row["pause"]:
                open_since.setdefault(link, time_ns)
            elif link in open_since:
                found.setdefault(link, []).append((open_since.pop(link), time_ns))
        for link, since in open_since.items():
            found.setdefault(link, []).append((since, int(self.record.run["simulated_ns"])))
        return {link: np.array(rows, dtype=np.int64) for link, rows in found.items()}

    def paused_ns(self, links: Iterable[int], begin_ns: int, end_ns: int) -> int:
        """Time in the interval in which any of the directed links was paused."""
        if not self.pauses:
            return 0
        ends = self.record.routes.ends
        rows = [self.pauses[ends[link]] for link in links if ends[link] in self.pauses]
        if not rows:
            return 0
        clipped = np.clip(np.concatenate(rows), begin_ns, end_ns)
        total, reached = 0, begin_ns
        for start, stop in sorted(map(tuple, clipped[clipped[:, 1] > clipped[:, 0]].tolist())):
            total += max(0, stop - max(start, reached))
            reached = max(reached, stop)
        return total


class Loads:
    """Traffic per directed link over time, from flows whose bytes are spread evenly over their lives."""

    def __init__(self, traffic: Traffic, flows: Iterable[Flow]) -> None:
        self._traffic = traffic
        crossing: dict[int, list[tuple[int, int, int]]] = {}
        for flow in flows:
            entry = (flow.start_ns, flow.end_ns, traffic.wire_bytes(flow))
            for link in traffic.path(flow):
                crossing.setdefault(link, []).append(entry)
        self._rows = {link: np.array(rows, dtype=np.float64) for link, rows in crossing.items()}

    def busy_ns(self, link: int, begin_ns: int, end_ns: int) -> float:
        """Time the link needs for what its flows carry in the interval; above its length the link is
        the reason that they are slow."""
        rows = self._rows.get(link)
        if rows is None:
            return 0.0
        overlap = np.minimum(rows[:, 1], end_ns) - np.maximum(rows[:, 0], begin_ns)
        share = np.clip(overlap, 0, None) / np.maximum(rows[:, 1] - rows[:, 0], 1)
        return float(share @ rows[:, 2]) * 8 * _NS / self._traffic.rate_bps(link)

    def others_ns(self, flow: Flow) -> int:
        """The most that any link of the flow's path had to carry for other flows while this one was under
        way, as time on that link, in ns."""
        own = self._traffic.wire_bytes(flow) * 8 * _NS
        return max(
            int(self.busy_ns(link, flow.start_ns, flow.end_ns) - own / self._traffic.rate_bps(link) + 0.5)
            for link in self._traffic.path(flow)
        )

    def holder(self, flow: Flow) -> int:
        """The link of the flow's path with the most work while the flow was under way; the slower,
        then the earlier one on a tie."""
        path = self._traffic.path(flow)
        work = [self.busy_ns(link, flow.start_ns, flow.end_ns) for link in path]
        best = max(range(len(path)), key=lambda i: (round(work[i], 3), -self._traffic.rate_bps(path[i]), -i))
        return path[best]
