"""Pictures as SVG text: the elements, and charts made of them."""
