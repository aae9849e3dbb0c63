"""Why does the model believe a fact? Text on the screen, a picture beside it."""

from pathlib import Path

from gamma_kg import Gamma
from gamma_kg.demo import demo_graph

kg = demo_graph()
model = Gamma.from_pretrained()

best = model.predict(kg, head="Norway", relation="borders", top_k=1)[0]
why = model.explain(kg, head="Norway", relation="borders", tail=best.name)
print(why.text())

Path("why.svg").write_text(why.svg(), encoding="utf-8")
print("picture in why.svg")
