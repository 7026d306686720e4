"""A place in a query's tokens: what stands here, what must stand here, and the error where it does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn, TypeVar

from pipeline.errors import QueryError, Span
from pipeline.query.tokens import RESERVED, Token, TokenKind, tokenize

CLAUSES = ("RETURN", "PATTERN", "FROM", "SEMANTICS", "WHERE", "GROUP-BY", "HAVING", "WITHIN", "SLIDE")
MAX_NESTING = 50  # of parentheses; each takes up to 13 calls, of Python's 1000

T = TypeVar("T")


class Cursor:
    """What every part of the parser reads from."""

    def __init__(self, text: str, file: str) -> None:
        self.text, self.file = text, file
        self.tokens = tokenize(text, file)
        self.at = 0
        self.depth = 0

    @property
    def token(self) -> Token:
        return self.tokens[self.at]

    @property
    def previous(self) -> Token:
        return self.tokens[self.at - 1]

    @property
    def following(self) -> Token:
        return self.tokens[min(self.at + 1, len(self.tokens) - 1)]

    def take(self) -> Token:
        token = self.token
        self.at += token.kind is not TokenKind.END
        return token

    def is_word(self, *words: str) -> bool:
        return self.token.kind is TokenKind.NAME and self.token.text.upper() in words

    def is_symbol(self, *symbols: str) -> bool:
        return self.token.kind is TokenKind.SYMBOL and self.token.text in symbols

    def is_name(self) -> bool:
        token = self.token
        return token.kind is TokenKind.QUOTED or (token.kind is TokenKind.NAME and token.text.upper() not in RESERVED)

    def opens(self, *words: str) -> bool:
        """Whether this is one of the words with its opening parenthesis."""
        return self.is_word(*words) and self.following.kind is TokenKind.SYMBOL and self.following.text == "("

    def is_decimal_point(self) -> bool:
        return self.is_symbol(".") and self.following.kind is TokenKind.NUMBER

    def accept_word(self, word: str) -> bool:
        found = self.is_word(word)
        self.at += found
        return found

    def accept_symbol(self, symbol: str) -> bool:
        found = self.is_symbol(symbol)
        self.at += found
        return found

    def expect_symbol(self, symbol: str, why: str = "", hint: str | None = None) -> Token:
        if not self.is_symbol(symbol):
            self.fail(f"expected {symbol!r}{' ' + why if why else ''}, found {self.found()}", hint=hint)
        return self.take()

    def close(self, symbol: str, opening: Token, why: str = "", hint: str | None = None) -> Token:
        if hint and self.token.kind is not TokenKind.END and not self.is_word(*CLAUSES):
            return self.expect_symbol(symbol, why, hint)
        start = opening.span.start
        line, column = self.text.count("\n", 0, start) + 1, start - self.text.rfind("\n", 0, start)
        return self.expect_symbol(symbol, why, f"the {opening.text} at {line}:{column} is open")

    def found(self) -> str:
        token = self.token
        if token.kind is TokenKind.END:
            return "the end of the query"
        return self.text[token.span.start : token.span.end]

    def fail(self, message: str, span: Span | None = None, hint: str | None = None) -> NoReturn:
        raise QueryError(message, self.text, span or self.token.span, self.file, hint)

    def name(self, what: str, hint: str | None = None) -> Token:
        if self.is_name():
            return self.take()
        not_names = {
            TokenKind.NAME: f"{self.found()} is a reserved word; write it in backquotes to use it as a name",
            TokenKind.TEXT: "a name stands without quotes, or in backquotes",
            TokenKind.NUMBER: "a name that is a number goes in backquotes",
        }
        self.fail(f"expected {what}, found {self.found()}", hint=hint or not_names.get(self.token.kind))

    def listed(self, one: Callable[[], T]) -> tuple[T, ...]:
        items = [one()]
        while self.accept_symbol(","):
            items.append(one())
        return tuple(items)

    def parenthesised(self, one: Callable[[], T]) -> tuple[T, ...]:
        opening = self.expect_symbol("(")
        parts = self.listed(one)
        self.close(")", opening, "or ','")
        return parts

    def nested(self, inside: Callable[[], T]) -> T:
        self.depth += 1
        if self.depth > MAX_NESTING:
            self.fail(f"more than {MAX_NESTING} levels of nesting", hint="leave out parentheses that change nothing")
        result = inside()
        self.depth -= 1
        return result
