"""Names to ids, batch by batch, so that the strings of a large file are never all held at once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

IdArray = npt.NDArray[np.int64]


class TripleEncoder:
    """Takes batches of named triples and gives ids by first appearance: in a triple the head comes before the tail."""

    def __init__(self) -> None:
        self.entity_ids: dict[str, int] = {}
        self.relation_ids: dict[str, int] = {}
        self._batches: list[npt.NDArray[np.int32]] = []
        self.num_triples = 0

    def add(self, heads: pl.Series, relations: pl.Series, tails: pl.Series) -> None:
        """Encodes three string columns of equal length without nulls."""
        num = len(heads)
        if num == 0:
            return
        # Head and tail in turns, so that "first appearance" runs along the lines.
        in_turns = np.arange(2 * num).reshape(2, num).T.ravel()
        ends = pl.concat([heads.rename("name"), tails.rename("name")]).gather(in_turns)
        encoded = np.empty((num, 3), dtype=np.int32)
        encoded[:, [0, 2]] = _encode(ends, self.entity_ids).reshape(num, 2)
        encoded[:, 1] = _encode(relations, self.relation_ids)
        self._batches.append(encoded)
        self.num_triples += num

    def add_rows(self, rows: Sequence[tuple[str, str, str]]) -> None:
        """Encodes a batch of Python tuples."""
        entities, relations = self.entity_ids, self.relation_ids
        encoded = np.empty((len(rows), 3), dtype=np.int32)
        for i, (head, relation, tail) in enumerate(rows):
            encoded[i, 0] = entities.setdefault(head, len(entities))
            encoded[i, 1] = relations.setdefault(relation, len(relations))
            encoded[i, 2] = entities.setdefault(tail, len(entities))
        if len(rows):
            self._batches.append(encoded)
            self.num_triples += len(rows)

    def entity_names(self) -> Iterable[str]:
        """Every entity so far, some perhaps more than once."""
        return self.entity_ids

    def pairs(self, relation: str) -> list[tuple[str, str]]:
        """Head and tail of every triple of one relation so far, by name."""
        own, names = self.relation_ids.get(relation), list(self.entity_ids)
        if own is None:
            return []
        ends = [batch[batch[:, 1] == own][:, [0, 2]].tolist() for batch in self._batches]
        return [(names[head], names[tail]) for part in ends for head, tail in part]

    def drop(self, things: Collection[str], properties: Collection[str]) -> None:
        """Takes out all triples with one of the things at an end or one of the properties, and names left unused."""
        whole = self.triples()
        ends = [self.entity_ids[name] for name in things if name in self.entity_ids]
        kinds = [self.relation_ids[name] for name in properties if name in self.relation_ids]
        whole = whole[~(np.isin(whole[:, [0, 2]], ends).any(axis=1) | np.isin(whole[:, 1], kinds))]
        for columns, ids in (([0, 2], self.entity_ids), ([1], self.relation_ids)):
            used, renumbered = np.unique(whole[:, columns], return_inverse=True)
            whole[:, columns] = renumbered.reshape(-1, len(columns))
            names = list(ids)
            ids.clear()
            ids.update((names[i], at) for at, i in enumerate(used.tolist()))
        self._batches, self.num_triples = [whole.astype(np.int32)], len(whole)

    def triples(self) -> IdArray:
        """All triples so far, int64 [n, 3]; empties the encoder's own store."""
        whole = np.empty((self.num_triples, 3), dtype=np.int64)
        start = 0
        self._batches.reverse()
        while self._batches:
            batch = self._batches.pop()
            whole[start : start + len(batch)] = batch
            start += len(batch)
        return whole


def _encode(names: pl.Series, ids: dict[str, int]) -> npt.NDArray[np.int32]:
    """Ids of `names`; new names are appended to `ids`. The dictionary is asked once per distinct name."""
    names = names.rename("name")
    distinct = names.filter(names.is_first_distinct())
    known = [ids.setdefault(name, len(ids)) for name in distinct.to_list()]
    table = pl.DataFrame({"name": distinct, "id": pl.Series(known, dtype=pl.Int32)})
    return names.to_frame().join(table, on="name", how="left", maintain_order="left")["id"].to_numpy()
