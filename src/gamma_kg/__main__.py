from gamma_kg.cli import main

main()
