"""The plan of a checked query: what each clause came to, which engines can run it and why, as text and as JSON."""

from pipeline.explain.build import explain
from pipeline.explain.plan import as_json
from pipeline.explain.text import as_text

__all__ = ["as_json", "as_text", "explain"]
