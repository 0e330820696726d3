"""Runs what README.md and docs/*.md tell the reader to type, and compares the output that they show.

    docs.py run [PAGE...]      run; without pages all of docs/. Exit code 1 if one fails or differs
    docs.py update PAGE...     run, and put what was printed into the page where it differs
    docs.py unrun [PAGE...]    list the blocks that are not run, each with its reason

The word after ``` says what a block is: sh and python are run; console is run as well, each line after
"$ ", and what it prints has to be what follows, "..." standing for anything within a line or, alone, for
any lines; text, yaml, json and cpp are for reading. A block after the line <!-- not run: REASON --> is
not run.

The blocks of a page are one shell session, in an empty folder with an empty catalog. README.md, which
begins with the installation, is run in the checkout.
"""

import difflib
import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RUN = ("sh", "console", "python")
READ = ("text", "yaml", "json", "cpp")
FENCE = re.compile(
    r"^(?:<!-- not run: (?P<reason>[^\n]*?) -->\n)?```(?P<kind>[^\n]*)\n(?P<body>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    """One fenced block: kind in RUN or READ, line of its first line, reason not to run it or None."""

    kind: str
    line: int
    body: str
    reason: str | None = None

    @property
    def is_run(self) -> bool:
        return self.kind in RUN and self.reason is None


@dataclass
class Command:
    """One command of a console block with the output shown under it; line is that of its "$ "."""

    line: int
    text: str
    shown: list[str] = field(default_factory=list)


def blocks(text: str) -> list[Block]:
    """All fenced blocks of a Markdown text. Raises ValueError on a kind that is in neither RUN nor READ."""
    found = []
    for match in FENCE.finditer(text):
        kind, line = match["kind"], text.count("\n", 0, match.start("kind")) + 2
        if kind not in RUN + READ:
            known = ", ".join(RUN + READ)
            raise ValueError(f"line {line - 1}: a block of kind {kind!r}; known kinds: {known}")
        found.append(Block(kind, line, match["body"], match["reason"]))
    return found


def commands(block: Block) -> list[Command]:
    """The commands of a console block. A line that ends in a backslash goes on in the next."""
    found: list[Command] = []
    goes_on = False
    for number, line in enumerate(block.body.splitlines(), block.line):
        if goes_on:
            found[-1].text += "\n" + line
        elif line.startswith("$ "):
            found.append(Command(number, line[2:]))
        elif found:
            found[-1].shown.append(line)
        else:
            raise ValueError(f"line {number}: a console block begins with '$ '")
        goes_on = line.endswith("\\") and not found[-1].shown
    return found


def agrees(shown: list[str], printed: list[str]) -> bool:
    """Whether the printed lines are the shown ones, "..." in the shown ones standing for anything."""
    parts = [re.escape(line).replace(r"\.\.\.", "[^\n]*") + "\n" for line in shown]
    pattern = "".join("(?:[^\n]*\n)*?" if part == "[^\n]*\n" else part for part in parts)
    return re.fullmatch(pattern, "".join(line + "\n" for line in printed)) is not None


def pieces(block: Block, outputs: Path) -> list[str]:
    """Bash for one block. What a command of a console block prints is kept in outputs/<its line>."""
    if block.kind == "console":
        kept = ((command.text, outputs / str(command.line)) for command in commands(block))
        return [f"{{ {text}\n}} >'{path}' 2>&1 || {{ cat '{path}'; exit 1; }}" for text, path in kept]
    if block.kind == "python":
        return [f"python - <<'END_OF_BLOCK'\n{block.body}END_OF_BLOCK"]
    return [block.body]


def script(found: list[Block], outputs: Path, name: str = "page") -> str:
    """One bash script out of the blocks that are run; it prints each block before running it."""
    parts = ["set -euo pipefail"]
    for block in filter(lambda block: block.is_run, found):
        parts.append(f"cat <<'END_OF_TEXT'\n\n== {name}, line {block.line}\n{block.body}END_OF_TEXT")
        parts += pieces(block, outputs)
    return "\n".join(parts)


def differences(found: list[Block], outputs: Path) -> list[tuple[Command, list[str]]]:
    """The commands that printed something else than is shown, with what they printed."""
    wrong = []
    for block in found:
        for command in commands(block) if block.kind == "console" and block.is_run else []:
            printed = (outputs / str(command.line)).read_text(encoding="utf-8").splitlines()
            printed = [line.rstrip() for line in printed]
            if not agrees(command.shown, printed):
                wrong.append((command, printed))
    return wrong


def run(page: Path, update: bool) -> bool:
    """Runs one page; True if every command ended well and printed what is shown."""
    text, name, start = page.read_text(encoding="utf-8"), str(page.relative_to(ROOT)), time.monotonic()
    found = blocks(text)
    with tempfile.TemporaryDirectory() as scratch:
        outputs, folder = Path(scratch, "outputs"), Path(scratch, "page")
        outputs.mkdir()
        folder.mkdir()
        environment = os.environ | {"HPCMOE_CATALOG": str(Path(scratch, "catalog"))}
        result = subprocess.run(
            ["bash", "-c", script(found, outputs, name)],
            cwd=ROOT if page.name == "README.md" else folder,
            env=environment,
            check=False,
        )
        wrong = differences(found, outputs) if result.returncode == 0 else []
    if update:
        page.write_text(replaced(text, wrong), encoding="utf-8")
    for command, printed in wrong:
        print(f"\n{name}, line {command.line}: {command.text} prints something else")
        print("\n".join(difflib.unified_diff(command.shown, printed, "shown", "printed", lineterm="")))
    seconds = time.monotonic() - start
    print(f"\n-- {name}: {'failed' if result.returncode or wrong else 'ok'}, {seconds:.0f} s", flush=True)
    return result.returncode == 0 and not wrong


def replaced(text: str, wrong: list[tuple[Command, list[str]]]) -> str:
    """The page with what was printed in place of what was shown."""
    lines = text.split("\n")
    for command, printed in reversed(wrong):
        first = command.line + command.text.count("\n")
        lines[first : first + len(command.shown)] = printed
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    if not arguments or arguments[0] not in ("run", "update", "unrun"):
        print(__doc__, file=sys.stderr)
        return 2
    pages = [Path(name).resolve() for name in arguments[1:]] or sorted((ROOT / "docs").glob("*.md"))
    pages = [page for page in pages if not page.is_symlink()]
    if arguments[0] == "unrun":
        for page in pages:
            for block in blocks(page.read_text(encoding="utf-8")):
                if block.reason is not None:
                    print(f"{page.relative_to(ROOT)}, line {block.line}: {block.reason}")
        return 0
    results = [run(page, arguments[0] == "update") for page in pages]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
