"""How fast the engines are and what memory they take, on generated streams: `make bench`."""
