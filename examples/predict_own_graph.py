"""Facts as a list of triples in, ranked answers out: who else might work where?"""

from gamma_kg import Gamma, KnowledgeGraph

FACTS = [
    ("Ann", "works for", "ACME"),
    ("Bob", "works for", "ACME"),
    ("Ann", "lives in", "Nairobi"),
    ("Bob", "lives in", "Nairobi"),
    ("ACME", "based in", "Nairobi"),
    ("Cleo", "works for", "Initech"),
    ("Cleo", "lives in", "Kampala"),
    ("Initech", "based in", "Kampala"),
    ("Dan", "lives in", "Kampala"),
    ("Ann", "knows", "Bob"),
    ("Cleo", "knows", "Dan"),
]

kg = KnowledgeGraph.from_triples(FACTS)
model = Gamma.from_pretrained()

print(kg)
for answer in model.predict(kg, head="Dan", relation="works for", top_k=3):
    print(f"Dan works for {answer.name}: {answer.probability:.0%}")
for answer in model.predict(kg, head="Dan", tail="Kampala", top_k=3):
    print(f"Dan {answer.name} Kampala: {answer.probability:.0%}")
