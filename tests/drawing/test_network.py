import re
import xml.etree.ElementTree as ET
from itertools import combinations

import numpy as np
import pytest

from gamma_kg.drawing.layers import PORT, columns_from, lay_out
from gamma_kg.drawing.network import Arrow, draw_network, wrapped
from gamma_kg.drawing.svg import SMALLEST_TEXT

SVG = "{http://www.w3.org/2000/svg}"


def random_arrows(seed: int) -> list[Arrow]:
    generator = np.random.default_rng(seed)
    ends = generator.integers(0, 9, size=(14, 2))
    return [Arrow(f"thing {a}", f"relation {a * b % 4}", f"thing {b}") for a, b in ends.tolist()]


@pytest.mark.parametrize("seed", range(6))
def test_boxes_do_not_overlap_and_no_two_arrows_share_an_end(seed: int) -> None:
    arrows = random_arrows(seed)
    pairs = [(arrow.head, arrow.tail) for arrow in arrows]
    column = columns_from("thing 0", "thing 8", pairs)
    layout = lay_out(column, dict.fromkeys(column, (80.0, 32.0)), pairs, dict.fromkeys(range(10), 120.0))
    for a, b in combinations(layout.boxes.values(), 2):
        apart_x = a.x + a.width <= b.x or b.x + b.width <= a.x
        apart_y = a.y + a.height / 2 <= b.y - b.height / 2 or b.y + b.height / 2 <= a.y - a.height / 2
        assert apart_x or apart_y, (a, b)
    ends = [points[i] for (a, b), points in zip(pairs, layout.arrows, strict=True) if a != b for i in (0, -1)]
    for (x1, y1), (x2, y2) in combinations(ends, 2):
        assert (x1, y1) != (x2, y2) and (x1 != x2 or abs(y1 - y2) >= PORT - 1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_lines_pass_beside_boxes_not_through_them(seed: int) -> None:
    arrows = random_arrows(seed)
    pairs = [(arrow.head, arrow.tail) for arrow in arrows]
    column = columns_from("thing 0", "thing 8", pairs)
    layout = lay_out(column, dict.fromkeys(column, (80.0, 32.0)), pairs, dict.fromkeys(range(10), 120.0))
    for points in layout.arrows:
        for x, y in points[1:-1]:
            for box in layout.boxes.values():
                inside = box.x <= x <= box.x + box.width and abs(y - box.y) < box.height / 2
                assert not inside


def test_an_entity_on_several_paths_is_one_box() -> None:
    arrows = [Arrow("a", "r", "b"), Arrow("b", "r", "z"), Arrow("a", "s", "c"), Arrow("c", "s", "b")]
    body = draw_network(arrows, "a", "z").body
    boxes = re.findall(r"<title>(\w)</title><rect", body)
    assert sorted(boxes) == ["a", "b", "c", "z"]


def test_long_names_are_wrapped_whole_and_no_text_is_too_small_to_read() -> None:
    name = "A name that goes on and on " + "x" * 50
    drawing = draw_network([Arrow(name, "is the relation that has a very long name", "<b>&")], name, "<b>&")
    root = ET.fromstring(f'<svg xmlns="http://www.w3.org/2000/svg">{drawing.body}</svg>')
    shown = "".join(element.text or "" for element in root.iter(f"{SVG}text"))
    for part in ("A name that goes on", "x" * 50, "very long name", "<b>&"):
        assert part in shown
    sizes = [float(element.get("font-size", 12)) for element in root.iter(f"{SVG}text")]
    assert min(sizes) >= SMALLEST_TEXT


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("therapeutic_or_preventive_procedure", ["therapeutic_or_", "preventive_procedure"]),
        ("SlicedTomatoToppingOfTheDay", ["SlicedTomatoToppingOf", "TheDay"]),
        ("x" * 45, ["x" * 22, "x" * 22, "x"]),
    ],
)
def test_a_long_word_is_parted_where_its_parts_meet(name: str, lines: list[str]) -> None:
    assert wrapped(name, 22) == lines


def test_names_of_arrows_side_by_side_stand_between_them() -> None:
    relations = [f"relation {i}" for i in range(6)]
    arrows = [Arrow("a", name, "b") if i % 2 else Arrow("b", name, "a") for i, name in enumerate(relations)]
    drawing = draw_network(arrows, "a", "b")
    root = ET.fromstring(f'<svg xmlns="{SVG[1:-1]}">{drawing.body}</svg>')
    base = [float(t.get("y", 0)) for t in root.iter(f"{SVG}text") if (t.text or "").startswith("relation")]
    lines = [
        float(path.get("d", "").split(",")[1].split()[0]) for path in root.iter(f"{SVG}path") if path.get("stroke")
    ]
    assert len(base) == 6 and len(set(lines)) == 6
    # Letters reach from some ten pixels above the line they are written on to three below.
    assert not [(y, line) for y in base for line in lines if y - 10 < line < y + 3]


def test_an_arrow_within_a_column_bows_around_the_boxes_between() -> None:
    pairs = [("a", "long"), ("a", "b"), ("a", "c"), ("long", "c")]
    column = columns_from("a", None, pairs)
    size = {"a": (80.0, 32.0), "long": (200.0, 32.0), "b": (60.0, 32.0), "c": (90.0, 32.0)}
    layout = lay_out(column, size, pairs, {0: 120.0, 1: 120.0})
    (x1, _), (x2, _) = layout.arrows[3]
    assert x1 == x2 and all(x1 >= box.x + box.width for box in layout.boxes.values())


@pytest.mark.parametrize("name", ["", "one", "two words here and there", "y" * 100, "日本語" * 20, "a  b\tc"])
def test_wrapping_loses_no_letter(name: str) -> None:
    assert "".join(wrapped(name, 10)).replace(" ", "") == "".join(name.split())
    assert all(len(line) <= 10 for line in wrapped(name, 10))
