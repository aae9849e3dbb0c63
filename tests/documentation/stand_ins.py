"""Small files under the names of the public ones that pages use, with the parts that the pages speak of.

The real ones are not in the project, and no test uses the network.
"""

from __future__ import annotations

PIZZA = """@prefix pizza: <http://www.co-ode.org/ontologies/pizza/pizza.owl#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
<http://www.co-ode.org/ontologies/pizza> a owl:Ontology .
pizza:hasTopping a owl:ObjectProperty .
"""
TOPPINGS = {
    "Margherita": ["TomatoTopping", "MozzarellaTopping"],
    "American": ["TomatoTopping", "MozzarellaTopping", "PeperoniSausageTopping"],
    "Cajun": ["TomatoTopping", "MozzarellaTopping", "PrawnsTopping"],
    "Giardiniera": ["TomatoTopping", "OliveTopping", "LeekTopping"],
    "Napoletana": ["TomatoTopping", "OliveTopping", "AnchoviesTopping"],
}


def pizza() -> str:
    lines = [PIZZA]
    for name, toppings in TOPPINGS.items():
        lines.append(f'pizza:{name} a owl:Class ; rdfs:label "{name}"@en ; rdfs:subClassOf pizza:NamedPizza')
        for topping in toppings:
            some = f"owl:onProperty pizza:hasTopping ; owl:someValuesFrom pizza:{topping}"
            lines.append(f" , [ a owl:Restriction ; {some} ]")
        lines.append(" .\n")
    for topping in sorted({topping for toppings in TOPPINGS.values() for topping in toppings}):
        lines.append(f"pizza:{topping} a owl:Class ; rdfs:subClassOf pizza:PizzaTopping .\n")
    return "".join(lines)


GO = """format-version: 1.2
ontology: go

[Term]
id: GO:0000001
name: mitochondrion inheritance
is_a: GO:0048308 ! organelle inheritance
is_a: GO:0048311 ! mitochondrion distribution

[Term]
id: GO:0048308
name: organelle inheritance
is_a: GO:0006996 ! organelle organization

[Term]
id: GO:0048311
name: mitochondrion distribution
is_a: GO:0006996 ! organelle organization
relationship: part_of GO:0048308

[Term]
id: GO:0006996
name: organelle organization

[Typedef]
id: part_of
name: part of
"""
BRICK = """@prefix qudtqk: <http://qudt.org/vocab/quantitykind/> .
@prefix brick: <https://brickschema.org/schema/Brick#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . @prefix skos: <http://www.w3.org/2004/02/skos/core#> .
brick:hasQuantity rdfs:label "Has Quantity" .
qudtqk:Temperature rdfs:label "Temperature" ; skos:prefLabel "Température"@fr ; brick:related brick:Humidity .
brick:Air_Temperature_Sensor rdfs:label "Air Temperature Sensor" ; brick:hasQuantity qudtqk:Temperature .
brick:Water_Temperature_Sensor rdfs:label "Water Temperature Sensor" ; brick:hasQuantity qudtqk:Temperature .
brick:Air_Humidity_Sensor rdfs:label "Air Humidity Sensor" ; brick:hasQuantity brick:Humidity .
brick:Soil_Temperature_Sensor rdfs:label "Soil Temperature Sensor" ; rdfs:subClassOf brick:Sensor .
"""
AIRPORTS = """iata,name,city,state,country,latitude,longitude
ABE,Lehigh Valley International,Allentown,PA,USA,40.65236278,-75.44040167
ABI,Abilene Regional,Abilene,TX,USA,32.41132,-99.68189722
ATL,William B Hartsfield-Atlanta Intl,Atlanta,GA,USA,33.64044444,-84.42694444
DFW,Dallas-Fort Worth International,Dallas-Fort Worth,TX,USA,32.89595056,-97.0372
DAL,Dallas Love,Dallas-Fort Worth,TX,USA,32.84711389,-96.85177222
LAX,Los Angeles International,Los Angeles,CA,USA,33.94253611,-118.4080744
WHP,Whiteman,Los Angeles,CA,USA,34.25932528,-118.4134331
"""
FILES = {"pizza.owl": pizza(), "go-basic.obo": GO, "Brick.ttl": BRICK, "airports.csv": AIRPORTS}
# A data set of countries for endpoints.
COUNTRIES = """@prefix ex: <http://example.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
ex:kenya ex:borders ex:uganda, ex:tanzania ; rdfs:label "Kenya" . ex:uganda ex:borders ex:kenya, ex:rwanda .
ex:tanzania ex:borders ex:kenya, ex:uganda . ex:nairobi ex:capitalOf ex:kenya . ex:kampala ex:capitalOf ex:uganda .
"""
FILMS = (
    ("Tom Hanks", "ACTED_IN", "Cast Away"),
    ("Tom Hanks", "ACTED_IN", "Apollo 13"),
    ("Ed Harris", "ACTED_IN", "Apollo 13"),
)
# Files of triples that the configs of the bundled weights train on: any facts will do.
TRAINING_GRAPHS = tuple(
    f"{name}.txt"
    for name in (
        "debian dbpedia50 icews05-15 icews14 kinship nations countries "
        "pokemon minecraft dota warframe world browsers unicode code"
    ).split()
)
