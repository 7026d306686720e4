"""Great Expectations on staged tables: what must hold is in `expectations/`, how it is checked is here."""
