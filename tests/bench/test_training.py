from gamma_kg.bench.training import measure_step, random_batch


def test_a_step_is_measured_against_its_unit() -> None:
    timing = measure_step(num_entities=30, num_triples=60, num_relations=4, batch_size=2, negatives=3, repeats=1)
    assert timing.gemm > 0
    assert timing.ratio == timing.seconds / timing.gemm


def test_the_measured_batch_has_the_size_asked_for() -> None:
    batch = random_batch(1400, 8000, 100, 16, 128)
    assert (batch.edges.num_nodes, len(batch), batch.wrong_BC.sum(1).tolist()) == (1400, 16, [128] * 16)
    assert 16_000 - 2 * 16 <= batch.edges.num_edges <= 16_000
