"""Which columns of a table are head, relation and tail."""

from __future__ import annotations

from collections.abc import Sequence

from gamma_kg.errors import DataError, did_you_mean

ROLES = ("head", "relation", "tail")
NUMBER_WORDS = {2: "two", 3: "three"}
# Header cells by which a table is understood without being told, most telling first.
HEADER_NAMES = {
    "head": "head h subject subj s source src from head_entity head_id head_name entity1 e1 node1 subject_id x".split(),
    "relation": (
        "relation rel r predicate pred p property relation_name relation_type relation_id relationship edge edge_type "
        "predicate_id link verb type kind label"
    ).split(),
    "tail": (
        "tail t object obj o target dst destination to tail_entity tail_id tail_name entity2 e2 node2 object_id y"
    ).split(),
}


def folded(cell: str) -> str:
    """A header cell as it is compared: no case, quotes, leading # or :, spaces as underscores."""
    return cell.strip().strip("\"'#:<>?").strip().casefold().replace(" ", "_").replace("-", "_")


def by_header_names(cells: Sequence[str]) -> tuple[int, ...] | None:
    """Positions of head, relation and tail if the cells are well-known header names, else None."""
    names = [folded(cell) for cell in cells]
    found: list[int] = []
    for role in ROLES:
        position = next((names.index(n) for n in HEADER_NAMES[role] if n in names), None)
        if position is None:
            return None
        found.append(position)
    return tuple(found) if len(set(found)) == 3 else None


def refuse_twins(cells: Sequence[str], positions: Sequence[int], where: str) -> None:
    """Refuses a header with the name of a role twice: which column is meant is not ours to say."""
    names = [folded(cell) for cell in cells]
    for position in positions:
        if names.count(names[position]) > 1:
            raise DataError(
                f"{where}: {names.count(names[position])} columns are named {cells[position].strip()!r}; choose by "
                "position, counted from 0 (--columns 0,1,2)"
            )


def by_choice(
    columns: Sequence[str | int], cells: Sequence[str], where: str, roles: Sequence[str] = ROLES
) -> tuple[int, ...]:
    """Positions of the chosen columns among `cells`, which are the header (or any row, if all are positions)."""
    found: list[int] = []
    for column, role in zip(columns, roles, strict=True):
        if isinstance(column, int):
            if not 0 <= column < len(cells):
                raise DataError(f"{where}: no column {column} for the {role}; there are {len(cells)}, counted from 0")
            found.append(column)
            continue
        exact = [i for i, cell in enumerate(cells) if cell.strip() == column]
        matches = exact or [i for i, cell in enumerate(cells) if folded(cell) == folded(column)]
        if not matches:
            listed = ", ".join(cell.strip()[:40] for cell in cells[:20])
            hint = did_you_mean(column, [cell.strip() for cell in cells]) or f"; the columns are {listed}"
            raise DataError(f"{where}: no column is named {column!r} (the {role}){hint}")
        if len(matches) > 1:
            raise DataError(
                f"{where}: {len(matches)} columns are named {column!r}; choose one by position, counted from 0: "
                f"{' or '.join(map(str, matches))}"
            )
        found.append(matches[0])
    if len(set(found)) != len(found):
        count, got = NUMBER_WORDS.get(len(found), str(len(found))), ", ".join(map(str, columns))
        raise DataError(f"{where}: columns must be {count} different ones, got {got}")
    return tuple(found)


def of_frame(cells: Sequence[str], columns: Sequence[str | int] | None, where: str) -> tuple[int, ...]:
    """Positions in a table that always has a header (Parquet, data frames)."""
    if columns is not None:
        return by_choice(columns, cells, where)
    known = by_header_names(cells)
    if known is not None:
        refuse_twins(cells, known, where)
        return known
    if len(cells) == 3:
        return 0, 1, 2
    raise DataError(f"{where}: {unclear(len(cells), cells[0] if cells else None)}")


def unclear(count: int, first: str | None = None) -> str:
    """The text for a table whose columns can't be told apart; `first` is a column that may name what a row is about."""
    wide = f"; if each row is one thing, say which column names it (--id-column {first})" if first else ""
    return (
        f"expected 3 columns (head, relation, tail), found {count}; "
        f"say which ones they are (--columns subject,predicate,object or --columns 0,1,2){wide}"
    )
