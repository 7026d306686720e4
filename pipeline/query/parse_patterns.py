"""Tokens → pattern: occurrences, SEQ, OR, ANY, negation and repetition."""

from __future__ import annotations

from pipeline.errors import Span, nearest
from pipeline.query import tree
from pipeline.query.cursor import CLAUSES, Cursor
from pipeline.query.tokens import TokenKind

OPERATORS = ("SEQ", "OR", "AND", "ANY", "EXISTS")
MAX_REPEAT = 1000


class PatternParser(Cursor):
    """A method for each rule of a pattern's grammar."""

    def pattern(self) -> tree.Pattern:
        return self.nested(self.prefixed)

    def prefixed(self) -> tree.Pattern:
        start = self.token.span
        if self.accept_symbol("!"):
            return tree.Not(self.pattern(), start.to(self.previous.span))
        if self.accept_word("EXISTS"):
            return tree.Exists(self.pattern(), start.to(self.previous.span))
        if self.is_word("NOT"):
            self.fail("expected a pattern, found NOT", hint="a negated pattern is written !p")
        pattern = self.primary()
        while self.is_symbol("+", "*", "?", "{"):
            low, high = self.bounds()
            pattern = tree.Repeat(pattern, low, high, start.to(self.previous.span))
        if self.is_name() and not isinstance(pattern, tree.Occurrence):
            clause = nearest(self.token.text, CLAUSES)
            self.fail(
                f"expected the end of this pattern, found {self.found()}",
                hint=f"did you mean {clause}?" if clause else "a variable stands right after its type: Stock S+",
            )
        return pattern

    def bounds(self) -> tuple[int, int | None]:
        token = self.take()
        if token.text != "{":
            return {"+": (1, None), "*": (0, None), "?": (0, 1)}[token.text]
        low = self.times()
        high: int | None = low
        if self.accept_symbol(","):
            high = None if self.is_symbol("}") else self.times()
        span = token.span.to(self.close("}", token).span)
        if high is not None and high < low:
            self.fail(f"at least {low} but at most {high} times cannot be", span, f"write {{{high},{low}}}")
        if high == 0:
            self.fail("this repeats the pattern 0 times", span, "leave the pattern out, or write ? for 0 or 1 times")
        return low, high

    def times(self) -> int:
        token = self.token
        if token.kind is not TokenKind.NUMBER or not token.text.isdecimal():
            hint = f"write {{0,{self.following.text}}}" if self.is_symbol(",") else "e.g. {2}, {2,} or {2,5}"
            self.fail(f"expected a number of times, found {self.found()}", hint=hint)
        if int(token.text) > MAX_REPEAT:
            hint = f"a number of times goes up to {MAX_REPEAT}; + and * have no limit"
            self.fail(f"more than {MAX_REPEAT} times", hint=hint)
        return int(self.take().text)

    def primary(self) -> tree.Pattern:
        start = self.token
        if self.accept_symbol("("):
            inner = self.pattern()
            self.close(")", start, "after the pattern")
            return inner
        if self.opens("ANY"):
            self.take()
            types = self.parenthesised(lambda: self.name("a type").text)
            if len(types) == 1:
                return self.occurrence(types, start.span, types[0])
            return self.occurrence(types, start.span, None)
        if self.opens("SEQ", "OR", "AND"):
            self.take()
            parts = self.parenthesised(self.pattern)
            operators: dict[str, type[tree.Seq | tree.Or | tree.And]]
            operators = {"SEQ": tree.Seq, "OR": tree.Or, "AND": tree.And}
            return operators[start.text.upper()](parts, start.span.to(self.previous.span))
        form = f"write {self.token.text.upper()}(A, B)" if self.is_word(*OPERATORS) else None
        if self.is_symbol(")", ","):
            form = "a pattern is missing here"
        token = self.name("a type, SEQ, OR, ANY, ! or '('", form)
        if self.is_symbol("("):
            known = nearest(token.text, OPERATORS)
            hint = f"did you mean {known}?" if known else f"the operators are {', '.join(OPERATORS)}"
            self.fail(f"unknown operator {token.text}", token.span, hint)
        return self.occurrence((token.text,), token.span, token.text)

    def occurrence(self, types: tuple[str, ...], start: Span, variable: str | None) -> tree.Occurrence:
        named = self.is_name()
        if named:
            variable = self.take().text
        return tree.Occurrence(types, variable, named, start.to(self.previous.span))
