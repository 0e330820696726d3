"""How the kinds of node of a topology look and what they are called."""

from __future__ import annotations

from typing import NamedTuple


class KindStyle(NamedTuple):
    """Marker (of matplotlib), colour and name."""

    marker: str
    color: str
    title: str


_STYLES = {
    "gpu": KindStyle("o", "#009e73", "GPU"),
    "host": KindStyle("o", "#009e73", "host"),
    "nic": KindStyle("s", "#e69f00", "NIC"),
    "pcie": KindStyle("D", "#0072b2", "PCIe switch"),
    "cpu": KindStyle("h", "#cc79a7", "CPU"),
    "nvswitch": KindStyle("D", "#56b4e9", "NVSwitch"),
    "scaleup": KindStyle("D", "#56b4e9", "scale-up switch"),
    "tor": KindStyle("p", "#d55e00", "ToR switch"),
    "leaf": KindStyle("p", "#d55e00", "leaf switch"),
    "rail": KindStyle("p", "#d55e00", "rail switch"),
    "spine": KindStyle("^", "#b84a00", "spine switch"),
}
_OTHERS = ("#8a949e", "#a5509b", "#5b7f00")


def style_of(kind: str) -> KindStyle:
    """The style of a kind; a user's own have grey and two more colours by their name's length."""
    return _STYLES.get(kind) or KindStyle("v", _OTHERS[len(kind) % len(_OTHERS)], kind.replace("_", " "))


def count_text(count: int, kind: str) -> str:
    """'1 NIC', '4 PCIe switches'."""
    title = style_of(kind).title
    if count == 1:
        return f"1 {title}"
    return f"{count} {title}{'es' if title.endswith(('ch', 's')) else 's'}"


def in_order(kinds: tuple[str, ...]) -> list[str]:
    """The kinds that there are, each once: those with a style of their own first."""
    held = dict.fromkeys(kinds)
    return [*(kind for kind in _STYLES if kind in held), *(kind for kind in held if kind not in _STYLES)]
