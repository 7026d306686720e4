"""Query text → tokens, each with its place in the text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from pipeline.errors import QueryError, Span


class TokenKind(Enum):
    """What a token is."""

    NAME = "name"  # letters, digits, _; a reserved word or a name
    QUOTED = "quoted name"  # a name in backquotes: never a reserved word
    NUMBER = "number"
    TEXT = "text"  # 'in single quotes'
    SYMBOL = "symbol"
    END = "end"  # the end of the query


@dataclass(frozen=True)
class Token:
    """A piece of the query: `text` is its meaning (unquoted, synonyms resolved), `span` where it stands."""

    kind: TokenKind
    text: str
    span: Span


_CLAUSES = ("RETURN", "PATTERN", "FROM", "SEMANTICS", "WHERE", "GROUP", "GROUP-BY", "HAVING", "WITHIN", "SLIDE")
RESERVED = frozenset({*_CLAUSES, "AND", "OR", "NOT", "NEXT", "SEQ", "ANY", "EXISTS", "AS"})

_SYNONYMS = {"≠": "!=", "≤": "<=", "≥": ">=", "−": "-", "×": "*", "÷": "/", "∧": "AND", "∨": "OR", "∃": "EXISTS"}

_TOKEN = re.compile(
    r"""
    (?P<space>\s+|--[^\n]*|/\*.*?\*/)
  | (?P<word>group-by\b|(?!\d+e[+-]?\d+\b)\w*[^\W\d]\w*)
  | (?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)
  | `(?P<quoted>[^`\n]+)`
  | '(?P<text>(?:[^'\n]|'')*)'
  | (?P<symbol><=|>=|!=|[-+*/?!=<>()\[\]{},.≠≤≥−×÷∧∨∃])
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)

_UNFINISHED = {
    "'": ("text without its closing quote", "text goes in single quotes on one line; write '' for a quote inside"),
    "`": ("name without its closing backquote", "a name in backquotes stands on one line"),
    '"': ("double quotes have no meaning here", "text goes in single quotes ('passive'), names in backquotes"),
    "/": ("comment without its closing */", "a comment is -- to the end of the line, or /* … */"),
    "&": ("& has no meaning here", "write AND"),
    "|": ("| has no meaning here", "write OR between conditions, OR(A, B) between patterns"),
    ";": ("; has no meaning here", "a file holds one query, without an end mark"),
    **dict.fromkeys("“”„‘’‚", ("curly quotes have no meaning here", "text goes in straight quotes: 'passive'")),
    **dict.fromkeys("–—", ("a long dash has no meaning here", "minus is - or −")),
}
_STRANGE = "text goes in single quotes, a name that has other characters than letters, digits and _ in backquotes"

MAX_DIGITS = 400


def tokenize(text: str, file: str = "query") -> list[Token]:
    """Split a query's text into tokens; comments and white space go.

    >>> [token.text for token in tokenize("A.x ≠ 5 -- a comment")]
    ['A', '.', 'x', '!=', '5', '']
    """
    tokens: list[Token] = []
    at = 0
    while at < len(text):
        unfinished = text.startswith("/*", at) and text.find("*/", at + 2) < 0
        match = None if unfinished else _TOKEN.match(text, at)
        if match is None:
            message, hint = _UNFINISHED.get(text[at], (f"character {text[at]!r} has no meaning here", _STRANGE))
            if text.startswith("``", at):
                message, hint = "a name in backquotes is not empty", "write the name between the backquotes"
            raise QueryError(message, text, Span(at, at + 1), file, hint)
        span = Span(at, match.end())
        if match["number"] and len(match["number"]) > MAX_DIGITS:
            raise QueryError(f"this number has more than {MAX_DIGITS} digits", text, span, file)
        at = match.end()
        if match["word"]:
            tokens.append(Token(TokenKind.NAME, match["word"], span))
        elif match["number"]:
            tokens.append(Token(TokenKind.NUMBER, match["number"], span))
        elif match["quoted"]:
            tokens.append(Token(TokenKind.QUOTED, match["quoted"], span))
        elif match["text"] is not None:
            tokens.append(Token(TokenKind.TEXT, match["text"].replace("''", "'"), span))
        elif match["symbol"]:
            meaning = _SYNONYMS.get(match["symbol"], match["symbol"])
            kind = TokenKind.NAME if meaning.isalpha() else TokenKind.SYMBOL
            tokens.append(Token(kind, meaning, span))
    tokens.append(Token(TokenKind.END, "", Span(len(text), len(text))))
    return tokens
