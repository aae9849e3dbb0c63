"""`Slots` of a large graph: shares come from a sample, and what an entity fills is looked up when it is asked for."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray

from gamma_kg.graph.edges import Edges
from gamma_kg.rules.sample import EntitySample, groups_of
from gamma_kg.rules.slots import DOUBT, GUESS, MIN_FIT, MIN_WORTH, Exclusions

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
KEPT_SLOTS = 1_024


class SampledSlots:
    """How well entities fit slots, judged by the entities of a sample."""

    def __init__(self, edges: Edges, sample: EntitySample) -> None:
        self._edges, self.sample = edges, sample
        self.num_slots = edges.num_types
        self._exclusions = Exclusions(sample.fillers_S.astype(np.float64), len(sample))
        self.both = lru_cache(maxsize=KEPT_SLOTS)(self._both)
        self._given = lru_cache(maxsize=KEPT_SLOTS)(self._shares)
        self.excluding = lru_cache(maxsize=KEPT_SLOTS)(self._excluding)

    def counts(self, slot: int, entity: IntArray) -> IntArray:
        """How often each entity fills the slot."""
        group, row = groups_of(self._edges, entity)
        at = torch.from_numpy(group)
        size = (self._edges.group_ptr[at + 1] - self._edges.group_ptr[at]).numpy()
        is_slot = self._edges.group_type[at].numpy() == slot
        count = np.zeros(len(entity), dtype=np.int64)
        count[row[is_slot]] = size[is_slot]
        return count

    def fits_of(self, slot: int, entity: IntArray) -> FloatArray:
        """How well each entity fits a slot, judged by the other slot that speaks most against it; 0..1."""
        group, row = groups_of(self._edges, entity)
        fit = np.full(len(entity), np.inf)
        np.minimum.at(fit, row, self._given(slot)[self._edges.group_type[torch.from_numpy(group)].numpy()])
        return np.where(np.isfinite(fit), fit, 0.0)

    def worth_of(self, slot: int, entity: IntArray) -> FloatArray:
        """Chance that an answer is missing when each entity is asked for this slot."""
        fillers = self.sample.fillers_S[slot]
        if not fillers:
            return np.zeros(len(entity))
        has_more = self.sample.several_S[slot] / (fillers + DOUBT)
        return np.where(self.counts(slot, entity) > 0, has_more, self.fits_of(slot, entity))

    def are_fit(self, slot: int, entity: IntArray) -> NDArray[np.bool_]:
        """Which entities fill the slot, or are of the type of its fillers."""
        return (self.counts(slot, entity) > 0) | (self.fits_of(slot, entity) >= MIN_FIT)

    def are_excluded(self, slot: int, entity: IntArray) -> NDArray[np.bool_]:
        """Which entities have a role whose many players never fill the slot."""
        group, row = groups_of(self._edges, entity)
        is_out = self.excluding(slot)[self._edges.group_type[torch.from_numpy(group)].numpy()]
        found = np.zeros(len(entity), dtype=bool)
        found[row[is_out]] = True
        return np.asarray(found & (self.counts(slot, entity) == 0))

    def promising(self, slot: int, among: IntArray | None) -> tuple[IntArray, FloatArray]:
        """Entities worth asking for the slot, and how much; of the sample, unless others are given."""
        entity = self.sample.entity_n if among is None else among
        worth = self._worth_of_sample(slot) if among is None else self.worth_of(slot, entity)
        chosen = np.flatnonzero(worth >= MIN_WORTH)
        return entity[chosen], worth[chosen]

    def _worth_of_sample(self, slot: int) -> FloatArray:
        """`worth_of` all entities of the sample, from what is known of them already."""
        sample = self.sample
        worth = np.zeros(len(sample))
        if not sample.fillers_S[slot]:
            return worth
        first = np.flatnonzero(np.diff(sample.row_G, prepend=-1))
        if len(first):
            worth[sample.row_G[first]] = np.minimum.reduceat(self._given(slot)[sample.slot_G], first)
        worth[sample.row_G[sample.slot_G == slot]] = sample.several_S[slot] / (sample.fillers_S[slot] + DOUBT)
        return worth

    def _both(self, slot: int) -> FloatArray:
        """How many fillers of every slot fill this one too, (S,)."""
        fills = np.zeros(len(self.sample))
        fills[self.sample.row_G[self.sample.slot_G == slot]] = 1.0
        return np.asarray(self.sample.filled_nS.T @ fills)

    def _shares(self, slot: int) -> FloatArray:
        given = (self.both(slot) + DOUBT * GUESS) / (self.sample.fillers_S + DOUBT)
        given[slot] = 1.0
        return given

    def _excluding(self, slot: int) -> NDArray[np.bool_]:
        return self._exclusions.of(slot, self.both(slot))
