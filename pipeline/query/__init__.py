"""Query text → tokens → tree → checked query with its automaton; pure Python, nothing is ever evaluated as Python."""
