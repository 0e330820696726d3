"""When and why each message of a collective was sent, from the completion times of the messages.

The rules of the simulated system layer, read backwards. A rank's chain is serial: a node starts when
the one before it ends. A collective runs in chunks, a few at a time. On receipt of a message a rank
waits the endpoint delay, and the reduction time where it reduces, and then sends its next message or
leaves the chunk. A message that arrives before its receive is posted counts as received then. Both
ends learn of a message when its sender has the last acknowledgement.

:meth:`Replay.before` gives, for a moment on some rank, the stretches of time that led to it and the
moment before those. Every step is checked against the record: where records and rules disagree there
is no critical path, and an error says so.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from hpcmoe.errors import InputError
from hpcmoe.inspect_run.record import Flow, Node, RunRecord

Place = tuple[int, int, int]
"""(rank, node, chunk)."""


@dataclass(frozen=True)
class Segment:
    """A stretch of time on the path. ``kind``: compute, endpoint, reduction or flow; a flow's rank is
    the receiver's."""

    kind: str
    rank: int
    node: int
    begin_ns: int
    end_ns: int
    chunk: int = -1
    flow: Flow | None = None

    @property
    def duration_ns(self) -> int:
        return self.end_ns - self.begin_ns


@dataclass(frozen=True)
class Moment:
    """A point in time on a rank: the end of a node, the start or exit of a chunk, the ``index``-th
    send or receipt in it."""

    kind: str
    rank: int
    node: int
    time_ns: int
    chunk: int = -1
    index: int = -1

    @property
    def place(self) -> Place:
        return self.rank, self.node, self.chunk


Step = tuple[list[Segment], Moment]


def reduction_ns(size: int, mem_bw_gbps: float) -> int:
    """Time to reduce a message of ``size`` bytes: three truncated accesses to memory."""
    return 3 * int(size / (mem_bw_gbps * 1e9) * 1e9) if mem_bw_gbps else 0


class Replay:
    """Moments of one run. All times in ns."""

    def __init__(self, record: RunRecord) -> None:
        system = record.system
        for name in ("model_shared_bus", "rendezvous_protocol", "replay_only"):
            if system[name]:
                raise InputError(
                    "no critical path for runs with this parameter",
                    field=name,
                    value=system[name],
                    allowed="false",
                )
        self.record = record
        self.endpoint_delay_ns = int(system["endpoint_delay_ns"])
        self._mem_bw = float(system["local_mem_bw_gbps"])
        self._active = -(-int(system["active_chunks_per_dimension"]) // int(system["num_queues_per_dim"]))
        self._loaded: set[int] = set()
        self._sends: dict[Place, list[Flow]] = {}
        self._receives: dict[Place, list[Flow]] = {}
        self._chunks: dict[tuple[int, int], set[int]] = {}
        self._barriers: dict[int, tuple[int, int]] = {}

    # --- records ------------------------------------------------------------------------------------

    def _node(self, node: int) -> Node:
        found = self.record.chain[node]
        if found.layer not in self._loaded:
            self._load(found.layer)
        return found

    def _load(self, layer: int) -> None:
        self._loaded.add(layer)
        for flow in self.record.flows_of(layer):
            self._sends.setdefault((flow.src, flow.node, flow.chunk), []).append(flow)
            self._receives.setdefault((flow.dst, flow.node, flow.chunk), []).append(flow)
            for rank in (flow.src, flow.dst):
                self._chunks.setdefault((rank, flow.node), set()).add(flow.chunk)
        for flows in self._sends.values():
            flows.sort(key=lambda flow: flow.step)
        for place, flows in self._receives.items():
            self._receives[place] = self._in_order_of_receipt(place, flows)

    def _in_order_of_receipt(self, place: Place, flows: list[Flow]) -> list[Flow]:
        """Receives count bytes of a source, so that the first to arrive serves the first one posted.
        Halving-doubling receives from the peer that it sends to, every other algorithm from anyone."""
        flows.sort(key=lambda flow: (flow.end_ns, flow.step))
        if self.record.chain[place[1]].algorithm != "halving-doubling":
            return flows
        waiting: dict[int, list[Flow]] = {}
        for flow in flows:
            waiting.setdefault(flow.src, []).append(flow)
        return [waiting[send.dst].pop(0) for send in self._sends[place]]

    def sends(self, place: Place) -> list[Flow]:
        self._node(place[1])
        return self._sends.get(place, [])

    def receives(self, place: Place) -> list[Flow]:
        self._node(place[1])
        return self._receives.get(place, [])

    def chunks(self, rank: int, node: int) -> list[int]:
        """Chunks of a collective on a rank, in the order in which they start."""
        self._node(node)
        found = sorted(self._chunks.get((rank, node), ()))
        if not found:
            raise InputError(
                f"no flow of rank {rank} in node {node} ({self._node(node).title}) is recorded",
                field=self.record.key,
            )
        return found

    # --- times on one rank --------------------------------------------------------------------------

    def node_start(self, rank: int, node: int) -> int:
        return self.node_end(rank, node - 1) if node else 0

    def node_end(self, rank: int, node: int) -> int:
        found = self._node(node)
        if found.duration_ns is not None:
            return self.node_start(rank, node) + found.duration_ns
        if found.is_barrier:
            return self._last_at_barrier(node)[0]
        return max(self.exit(rank, node, chunk).time_ns for chunk in self.chunks(rank, node))

    def _last_at_barrier(self, node: int) -> tuple[int, int]:
        """When the last rank gets to a barrier, and which that is (the lowest of several)."""
        if node not in self._barriers:
            starts = [self.node_start(rank, node) for rank in range(len(self.record.ranks))]
            self._barriers[node] = max(starts), starts.index(max(starts))
        return self._barriers[node]

    def chunk_start(self, rank: int, node: int, chunk: int) -> int:
        """The first chunks start with the node, each other one when an earlier chunk leaves."""
        order = self.chunks(rank, node)
        place = order.index(chunk)
        if place < self._active:
            return self.node_start(rank, node)
        exits = sorted(self.exit(rank, node, other).time_ns for other in order[:place])
        return exits[place - self._active]

    def exit(self, rank: int, node: int, chunk: int) -> Moment:
        """When the chunk leaves the collective."""
        time_ns = self._rules(node).exit(rank, node, chunk)[0]
        return Moment("exit", rank, node, time_ns, chunk)

    # --- backwards ----------------------------------------------------------------------------------

    def before(self, moment: Moment) -> Step:
        """What led to a moment: segments, latest first, that fill the time from the returned moment."""
        step = {
            "node_end": self._before_node_end,
            "chunk_start": self._before_chunk_start,
            "exit": lambda m: self._rules(m.node).exit(*m.place)[1],
            "receipt": self._before_receipt,
            "send": lambda m: self._rules(m.node).before_send(m),
        }[moment.kind](moment)
        self._check(moment, step)
        return step

    def _check(self, moment: Moment, step: Step) -> None:
        time_ns = moment.time_ns
        for segment in step[0]:
            if segment.end_ns != time_ns or segment.begin_ns > time_ns:
                break
            time_ns = segment.begin_ns
        else:
            if time_ns == step[1].time_ns:
                return
        raise InputError(
            f"the records of rank {moment.rank} in {self._node(moment.node).title}, chunk {moment.chunk}, "
            f"do not follow the known rules at {moment.time_ns} ns: no critical path",
            field=self.record.key,
        )

    def _before_node_end(self, moment: Moment) -> Step:
        rank, node, time_ns = moment.rank, moment.node, moment.time_ns
        duration = self._node(node).duration_ns
        if self._node(node).is_barrier:
            return [], Moment("node_end", self._last_at_barrier(node)[1], node - 1, time_ns)
        if duration is None:
            exits = [self.exit(rank, node, chunk) for chunk in self.chunks(rank, node)]
            return [], max(exits, key=lambda e: e.time_ns)
        segment = Segment("compute", rank, node, time_ns - duration, time_ns)
        return [segment], Moment("node_end", rank, node - 1, time_ns - duration)

    def _before_chunk_start(self, moment: Moment) -> Step:
        rank, node, chunk = moment.place
        place = self.chunks(rank, node).index(chunk)
        if place < self._active:
            return [], Moment("node_end", rank, node - 1, self.node_start(rank, node))
        exits = sorted(
            (self.exit(rank, node, other) for other in self.chunks(rank, node)[:place]),
            key=lambda e: e.time_ns,
        )
        return [], exits[place - self._active]

    def _before_receipt(self, moment: Moment) -> Step:
        """The message itself, or the posting of its receive where it was there before."""
        flow = self.receives(moment.place)[moment.index]
        segment = Segment("flow", moment.rank, moment.node, flow.start_ns, flow.end_ns, moment.chunk, flow)
        order = self.sends((flow.src, flow.node, flow.chunk)).index(flow)
        return [segment], Moment("send", flow.src, flow.node, flow.start_ns, flow.chunk, order)

    def gap(self, rank: int, node: int, chunk: int, begin_ns: int, end_ns: int, size: int) -> list[Segment]:
        """Endpoint delay, then reduction of ``size`` bytes where there is one, between two moments."""
        middle = begin_ns + self.endpoint_delay_ns
        segments = [Segment("endpoint", rank, node, begin_ns, middle, chunk)]
        if end_ns - middle == reduction_ns(size, self._mem_bw) != 0:
            segments.insert(0, Segment("reduction", rank, node, middle, end_ns, chunk))
        return segments

    def start_gap(self, rank: int, node: int, chunk: int, time_ns: int) -> Step:
        """Before the first send of a chunk."""
        begin = time_ns - self.endpoint_delay_ns
        if begin != self.chunk_start(rank, node, chunk):
            return [], Moment("chunk_start", rank, node, -1, chunk)
        return [Segment("endpoint", rank, node, begin, time_ns, chunk)], Moment(
            "chunk_start", rank, node, begin, chunk
        )

    @cached_property
    def _known_rules(self) -> dict[str, Rules]:
        stepwise = OneByOne(self)
        return {
            "ring": stepwise,
            "halving-doubling": stepwise,
            "direct": AllAtOnce(self),
            "double binary tree": Tree(self),
        }

    def _rules(self, node: int) -> Rules:
        return self._known_rules[self._node(node).algorithm]


class Rules(ABC):
    """How one family of algorithms sends and leaves."""

    def __init__(self, replay: Replay) -> None:
        self.replay = replay
        self.delay = replay.endpoint_delay_ns

    @abstractmethod
    def exit(self, rank: int, node: int, chunk: int) -> tuple[int, Step]:
        """When a rank leaves a chunk, and the step that led there."""

    @abstractmethod
    def before_send(self, moment: Moment) -> Step:
        """The step that led to a send."""

    def leave(self, receipt: Moment) -> tuple[int, Step]:
        """A chunk left one endpoint delay after a receipt."""
        time_ns = receipt.time_ns + self.delay
        segment = Segment("endpoint", receipt.rank, receipt.node, receipt.time_ns, time_ns, receipt.chunk)
        return time_ns, ([segment], receipt)

    def received(self, place: Place, index: int, posted_ns: int, posting: Callable[[], Moment]) -> Moment:
        """The receipt, or the moment of ``posting`` when the message was there before."""
        flow = self.replay.receives(place)[index]
        rank, node, chunk = place
        if flow.end_ns >= posted_ns:
            return Moment("receipt", rank, node, flow.end_ns, chunk, index)
        return posting()


class OneByOne(Rules):
    """Ring and halving-doubling: send k and the receive of message k are posted together; the receipt of
    message k releases send k + 1, the last one the chunk."""

    def exit(self, rank: int, node: int, chunk: int) -> tuple[int, Step]:
        return self.leave(self._receipt((rank, node, chunk), -1))

    def before_send(self, moment: Moment) -> Step:
        rank, node, chunk = moment.place
        if moment.index == 0:
            return self.replay.start_gap(rank, node, chunk, moment.time_ns)
        cause = self._receipt(moment.place, moment.index - 1)
        size = self.replay.sends(moment.place)[moment.index].bytes
        return self.replay.gap(rank, node, chunk, cause.time_ns, moment.time_ns, size), cause

    def _receipt(self, place: Place, index: int) -> Moment:
        sends = self.replay.sends(place)
        index %= len(sends)
        send = sends[index]
        return self.received(
            place,
            index,
            send.start_ns,
            lambda: Moment("send", place[0], place[1], send.start_ns, place[2], index),
        )


class AllAtOnce(Rules):
    """Direct all-to-all: every message leaves at once; the last receipt releases the chunk."""

    def exit(self, rank: int, node: int, chunk: int) -> tuple[int, Step]:
        place = (rank, node, chunk)
        receives = self.replay.receives(place)
        last = max(range(len(receives)), key=lambda i: receives[i].end_ns)
        posted = self.replay.sends(place)[0].start_ns
        return self.leave(
            self.received(place, last, posted, lambda: Moment("send", rank, node, posted, chunk, 0))
        )

    def before_send(self, moment: Moment) -> Step:
        return self.replay.start_gap(moment.rank, moment.node, moment.chunk, moment.time_ns)


class Tree(Rules):
    """Double binary tree. A leaf sends up at once and leaves after the message from above. The others
    wait for their children from the start; a node in the middle sends up after both, and down and leaves
    after the message from above; the root sends down and leaves."""

    def exit(self, rank: int, node: int, chunk: int) -> tuple[int, Step]:
        place = (rank, node, chunk)
        sends, receives = self.replay.sends(place), self.replay.receives(place)
        if self._is_leaf(sends, receives):
            flow = receives[0]
            return self.leave(Moment("receipt", rank, node, flow.end_ns, chunk, 0))
        last = len(sends) - 1
        return sends[last].start_ns, ([], Moment("send", rank, node, sends[last].start_ns, chunk, last))

    @staticmethod
    def _is_leaf(sends: list[Flow], receives: list[Flow]) -> bool:
        return len(sends) == 1 and sends[0].start_ns < receives[0].end_ns

    def before_send(self, moment: Moment) -> Step:
        rank, node, chunk = moment.place
        sends, receives = self.replay.sends(moment.place), self.replay.receives(moment.place)
        if self._is_leaf(sends, receives):
            return self.replay.start_gap(rank, node, chunk, moment.time_ns)
        cause = self._cause(moment, sends, receives)
        size = sends[moment.index].bytes
        return self.replay.gap(rank, node, chunk, cause.time_ns, moment.time_ns, size), cause

    def _cause(self, moment: Moment, sends: list[Flow], receives: list[Flow]) -> Moment:
        """The message from the parent for a send down from the middle, else the later child's."""
        rank, node, chunk = moment.place
        parent = sends[0].dst if len(sends) > 1 else -1
        from_above = moment.index > 0
        wanted = [i for i, flow in enumerate(receives) if (flow.src == parent) == from_above]
        last = max(wanted, key=lambda i: receives[i].end_ns)
        posted = self.replay.chunk_start(rank, node, chunk) if not from_above else 0
        return self.received(
            moment.place, last, posted, lambda: Moment("chunk_start", rank, node, posted, chunk)
        )
