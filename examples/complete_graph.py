"""The most probable missing facts of a graph, with probabilities fitted to it, written as a table."""

from dataclasses import asdict

from gamma_kg import Gamma
from gamma_kg.complete import complete
from gamma_kg.demo import demo_graph
from gamma_kg.io.rows import write_rows

kg = demo_graph()
model = Gamma.from_pretrained()

print(model.calibrate(kg, max_hidden=40))
found = complete(model, kg, relations=["capital of"], top=10)
for fact in found.facts:
    print(f"{fact.probability:6.1%}  {fact.head} {fact.relation} {fact.tail}")

write_rows("new_facts.csv", (asdict(fact) for fact in found.facts), kg)
print("table in new_facts.csv")
