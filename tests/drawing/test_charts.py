import xml.etree.ElementTree as ET

import pytest

from gamma_kg.drawing.charts import colours_of, difference_bars, grouped_bars, line_chart, ticks
from gamma_kg.drawing.svg import text

SVG = "{http://www.w3.org/2000/svg}"
NASTY = '<script>alert("&")</script>'


def test_every_chart_is_sound_xml_whatever_the_names() -> None:
    charts = (
        difference_bars({NASTY: 0.1, "b": -0.2}, NASTY),
        grouped_bars([NASTY], {NASTY: [0.5]}, NASTY),
        line_chart(NASTY, {NASTY: [(0, 1), (2, 3)]}, NASTY),
    )
    for chart in charts:
        root = ET.fromstring(chart)
        assert not root.findall(f".//{SVG}script")
        assert any(NASTY in (element.text or "") for element in root.iter(f"{SVG}text"))


def test_a_group_without_a_value_takes_no_room_and_the_scale_fits() -> None:
    nan = float("nan")
    chart = grouped_bars(["full", "empty"], {"a": [0.2, nan], "b": [0.4, nan]}, "t")
    labels = [element.text for element in ET.fromstring(chart).iter(f"{SVG}text")]
    assert "full" in labels and "empty" not in labels
    assert "1" not in labels  # an axis up to 1 would leave most of the picture empty


def test_a_model_keeps_its_colour_when_others_are_left_out() -> None:
    colours = colours_of(["a", "b", "c"])
    chart = grouped_bars(["g"], {"c": [0.3]}, "t", colours)
    assert colours["c"] in chart and colours["a"] not in chart


def test_text_that_nobody_can_read_is_refused() -> None:
    with pytest.raises(AssertionError):
        text(0, 0, "tiny", size=9)


@pytest.mark.parametrize(("low", "high"), [(0, 1), (0, 0.07), (-0.3, 12.2), (0, 0), (0, 1e-9), (0, 123456)])
def test_ticks_are_round_few_and_cover_the_range(low: float, high: float) -> None:
    found = ticks(low, high)
    assert found[0] <= low and found[-1] >= high * (1 - 1e-9) and 2 <= len(found) <= 9
