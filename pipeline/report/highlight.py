"""A query's text as HTML, its words marked by what they are."""

from __future__ import annotations

import re

from markupsafe import Markup, escape

from pipeline.errors import QueryError
from pipeline.query.tokens import RESERVED, TokenKind, tokenize

KINDS = {TokenKind.NUMBER: "number", TokenKind.TEXT: "text", TokenKind.QUOTED: "quoted"}
FUNCTIONS = frozenset({"COUNT", "SUM", "AVG", "MIN", "MAX"})
COMMENT = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)


def highlighted(text: str) -> Markup:
    """The text; as it is where it is no query.

    >>> highlighted("RETURN COUNT(*) -- all")
    Markup('<span class="q-word">RETURN</span> <span class="q-call">COUNT</span>(*) <span class="q-note">-- all</span>')
    """
    try:
        tokens = tokenize(text)
    except QueryError:
        return escape(text)
    parts, at = [], 0
    for token in tokens:
        parts.append(_between(text[at : token.span.start]))
        written, at = text[token.span.start : token.span.end], token.span.end
        name = KINDS.get(token.kind)
        # The parts of skip-till-any-match are no words of their own.
        is_part = "-" in (text[token.span.start - 1 : token.span.start], text[at : at + 1])
        if token.kind is TokenKind.NAME and token.text.upper() in RESERVED | FUNCTIONS and not is_part:
            name = "call" if token.text.upper() in FUNCTIONS else "word"
        parts.append(_marked(name, written) if name else escape(written))
    return Markup().join(parts)


def _between(text: str) -> Markup:
    """White space, and the comments in it."""
    parts, at = [], 0
    for comment in COMMENT.finditer(text):
        parts += [escape(text[at : comment.start()]), _marked("note", comment[0])]
        at = comment.end()
    return Markup().join([*parts, escape(text[at:])])


def _marked(name: str, text: str) -> Markup:
    return Markup('<span class="q-{}">{}</span>').format(name, text)
