"""``hpcmoe pack``: a small copy of a results file, without traces."""

from __future__ import annotations

import argparse
from pathlib import Path


def pack(arguments: argparse.Namespace) -> int:
    from hpcmoe.store import pack as store_pack
    from hpcmoe.store.reader import open_checked

    source, target = Path(arguments.results), Path(arguments.output)
    open_checked(source).close()
    store_pack.pack(source, target)
    sizes = (source.stat().st_size / 1e6, target.stat().st_size / 1e6)
    print(f"{target}: {sizes[1]:.1f} MB, without traces ({source}: {sizes[0]:.1f} MB)")
    return 0
