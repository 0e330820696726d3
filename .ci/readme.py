"""Runs the commands of README.md in order, as one shell session, so that none of them goes stale.

The word after ``` says what a block is:

sh           shell commands, run here
python       a script, run here
sh ci        commands that .ci/run runs itself
sh cluster   commands that need Slurm or many cores; not run here
text         output or a layout, nothing to run
"""

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KINDS = ("sh", "python", "sh ci", "sh cluster", "text")
FENCE = re.compile(r"^```(?P<kind>[^\n]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """One fenced block: kind is one of KINDS, line the number of its first line."""

    kind: str
    line: int
    body: str


def blocks(text: str) -> list[Block]:
    """All fenced blocks of a Markdown text. Raises ValueError on a kind that is not in KINDS."""
    found = []
    for match in FENCE.finditer(text):
        kind, line = match["kind"].strip(), text.count("\n", 0, match.start()) + 2
        if kind not in KINDS:
            raise ValueError(f"line {line - 1}: a block of kind {kind!r}; known kinds: {', '.join(KINDS)}")
        found.append(Block(kind, line, match["body"]))
    return found


def script(found: list[Block]) -> str:
    """One bash script out of the blocks that are run; it prints each block before running it."""
    parts = ["set -euo pipefail"]
    for block in found:
        if block.kind not in ("sh", "python"):
            continue
        marker = f"END_OF_README_{block.line}"
        parts.append(f"cat <<'{marker}'\n\n== README.md, line {block.line}\n{block.body}{marker}")
        body = block.body if block.kind == "sh" else f"python - <<'{marker}'\n{block.body}{marker}\n"
        parts.append(body)
    return "\n".join(parts)


def main(arguments: list[str]) -> int:
    text = script(blocks((ROOT / "README.md").read_text(encoding="utf-8")))
    if arguments == ["show"]:
        print(text)
        return 0
    if arguments != ["run"]:
        print("usage: readme.py run|show", file=sys.stderr)
        return 2
    return subprocess.run(["bash", "-c", text], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
