"""Nothing lost, nobody let in: tries every kind of fault many times and prints tried / wrong per line.

python benchmarks/faults.py                 the whole campaign, under an hour on two cores
python benchmarks/faults.py --short         a few of each, as in `make test`
python benchmarks/faults.py --only killed   the lines whose part has this name
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from campaign.killing import killed_anywhere
from campaign.lines import SHORT, WHOLE, Part
from campaign.sharing import full_disk, read_only, two_at_once
from campaign.threads import many_threads

PARTS: dict[str, Part] = {
    "killed": killed_anywhere,
    "two at once": two_at_once,
    "full disk": full_disk,
    "read-only": read_only,
    "threads": many_threads,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="a few of each")
    parser.add_argument("--only", choices=PARTS, help="one part of the campaign")
    options = parser.parse_args()
    wrong, began = 0, time.monotonic()
    for name, part in PARTS.items():
        if options.only in (None, name):
            folder = Path(tempfile.mkdtemp(prefix="gamma-faults-"))
            for line in part(folder, SHORT if options.short else WHOLE):
                print(line, flush=True)
                for complaint in line.wrong[:5]:
                    print(f"    {complaint}", flush=True)
                wrong += len(line.wrong)
            shutil.rmtree(folder, ignore_errors=True)
    print(f"{wrong} wrong in {(time.monotonic() - began) / 60:.0f} minutes")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
