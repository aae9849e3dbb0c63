"""`gamma` with one set of the catalogue at a server of the campaign (GAMMA_FAULTS_SERVER) instead of its origin."""

from __future__ import annotations

import os
import sys


def use_server() -> None:
    import hashlib
    from dataclasses import replace
    from pathlib import Path

    from gamma_kg.data import catalog

    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from campaign.slow_server import FILES, SLUG

    server, known = os.environ["GAMMA_FAULTS_SERVER"], catalog.catalog()
    facts = {
        name: catalog.FileFacts(content.count(b"\n"), hashlib.sha256(content).hexdigest())
        for name, content in FILES.items()
    }
    downloads = tuple(catalog.Download(name, (f"{server}/{name}",)) for name in FILES)
    changed = {**known, SLUG: replace(known[SLUG], files=facts, downloads=downloads)}
    catalog.catalog = lambda: changed  # type: ignore[assignment]


if __name__ == "__main__":
    try:
        from gamma_kg.__main__ import catch_stops

        catch_stops()
        use_server()
        from gamma_kg.cli import main
    except KeyboardInterrupt:
        sys.exit(130)
    main()
