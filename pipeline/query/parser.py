"""Tokens → tree: a recursive-descent parser whose errors say what was expected and what is probably meant."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import NoReturn, TypeVar

from pipeline.errors import Span, nearest
from pipeline.query import tree
from pipeline.query.cursor import CLAUSES, MAX_NESTING
from pipeline.query.parse_conditions import FUNCTIONS, ConditionParser
from pipeline.query.parse_patterns import PatternParser
from pipeline.query.tokens import RESERVED, Token, TokenKind

__all__ = ["FUNCTIONS", "MAX_DEPTH", "MAX_NESTING", "parse"]

MAX_DEPTH = 100  # of the tree, which chains such as A++ and a + b + c deepen too
MAX_EXTENT, MIN_EXTENT = 1e15, 1e-15

# What may stand after a clause besides the next one.
_GOES_ON = {"RETURN": ("','", "AS"), "WHERE": ("AND", "OR"), "GROUP-BY": ("','",), "HAVING": ("AND", "OR")}

_UNIT_NAMES = {
    **{name: unit for unit in (*tree.UNITS, "events") for name in (unit, unit[:-1])},
    **{"ms": "milliseconds", "s": "seconds", "sec": "seconds", "secs": "seconds", "min": "minutes", "mins": "minutes"},
    **{"h": "hours", "hr": "hours", "hrs": "hours", "d": "days"},
}

Node = TypeVar("Node", bound=tree.Node)


def parse(text: str, file: str = "query") -> tree.Query:
    """Parse a query's text.

    >>> print(parse("return count(*) event A+ within 1 min"))
    RETURN    COUNT(*)
    PATTERN   A+
    SEMANTICS skip-till-any-match
    WITHIN    1 minute
    """
    return _Parser(text, file).query()


class _Parser(PatternParser, ConditionParser):
    clause = "RETURN"  # the one being read

    def query(self) -> tree.Query:
        if not self.accept_word("RETURN"):
            close = "did you mean RETURN?" if nearest(self.token.text, ["RETURN"]) else None
            hint = close or "a query begins with RETURN, e.g. RETURN COUNT(*)"
            self.fail(f"expected RETURN, found {self.found()}", hint=hint)
        returns = self.listed(self.item)
        if not self.begins("PATTERN", "EVENT"):
            self.misplaced()
        pattern = self.shallow(self.pattern())
        source = self.name("the name of a dataset").text if self.begins("FROM") else None
        semantics = self.semantics() if self.begins("SEMANTICS") else tree.Semantics.ANY
        where = self.shallow(self.condition()) if self.begins("WHERE") else None
        group_by = self.group_by()
        having = self.shallow(self.condition()) if self.begins("HAVING") else None
        if not self.begins("WITHIN"):
            self.misplaced()
        within = self.extent()
        slide = self.extent() if self.begins("SLIDE") else None
        if self.token.kind is not TokenKind.END:
            self.misplaced()
        return tree.Query(returns, pattern, source, semantics, where, group_by, having, within, slide)

    def begins(self, word: str, *synonyms: str) -> bool:
        """Take a clause's word if it stands here."""
        found = self.is_word(word, *synonyms)
        if found:
            self.take()
            self.clause = word
        return found

    def shallow(self, root: Node) -> Node:
        """The tree itself; an error where it is so deep that a walk through it could exhaust Python's stack."""
        waiting: list[tuple[tree.Node, int]] = [(root, 1)]
        while waiting:
            node, depth = waiting.pop()
            if depth > MAX_DEPTH:
                self.fail(f"more than {MAX_DEPTH} operators inside one another", node.span, "split or simplify this")
            waiting += ((child, depth + 1) for child in tree.children(node))
        return root

    def misplaced(self) -> NoReturn:
        """Something that can neither go on with this clause nor begin the next one."""
        after = CLAUSES[CLAUSES.index(self.clause) + 1 :]
        required = {"RETURN": "PATTERN", "WITHIN": "the end of the query", "SLIDE": "the end of the query"}
        needed = required.get(self.clause, "WITHIN")
        if needed in after:
            after = after[: after.index(needed)]
        choices = [*_GOES_ON.get(self.clause, ()), *after]
        expected = f"{', '.join(choices)} or {needed}" if choices else needed
        word = "GROUP-BY" if self.is_word("GROUP") else self.token.text.upper()
        if self.token.kind is TokenKind.END:
            example = {"PATTERN": "PATTERN Stock S+", "WITHIN": "WITHIN 10 minutes SLIDE 1 minute"}[needed]
            hint = f"every query needs {needed}, e.g. {example}"
            self.fail(f"expected {needed}, found {self.found()}", hint=hint)
        if self.token.kind is TokenKind.NAME and word in CLAUSES:
            order = "clauses come once each, in the order " + ", ".join(CLAUSES)
            self.fail(f"{word} cannot stand here: expected {expected}", hint=order)
        if self.clause == "PATTERN" and self.previous.kind is TokenKind.NAME:
            # A misspelt clause after a lone type was taken for its variable.
            clause = nearest(self.previous.text, [*after, needed])
            if clause:
                message = f"expected {expected}, found {self.previous.text}"
                self.fail(message, self.previous.span, f"did you mean {clause}?")
        words = [choice for choice in (*choices, needed) if len(choice) > 2]  # AS and OR are near to anything short
        close = nearest(self.token.text, words) if self.token.kind is TokenKind.NAME else None
        meant = f"did you mean {close}?" if close and close != word else self.stray()
        self.fail(f"expected {expected}, found {self.found()}", hint=meant)

    def stray(self) -> str | None:
        """What was probably meant by something that cannot stand after this clause."""
        if self.is_symbol(")", "]", "}"):
            return f"this {self.token.text} closes nothing"
        if self.clause == "PATTERN":
            if self.is_symbol("-", ".") and self.following.text != ">":
                return "a name that has other characters than letters, digits and _ goes in backquotes"
            return "patterns are joined by SEQ(A, B), OR(A, B)"
        if self.clause in ("WHERE", "HAVING") and (self.is_name() or self.is_symbol(",", "(", "[")):
            return "conditions are joined by AND, OR"
        if self.clause == "RETURN" and self.is_name():
            return "items are separated by commas; an alias is written AS name"
        return None

    def item(self) -> tree.Item:
        start = self.token.span
        value = self.aggregate() if self.opens(*FUNCTIONS) else self.returned_name()
        alias = self.name("an alias").text if self.accept_word("AS") else None
        return tree.Item(value, alias, start.to(self.previous.span))

    def returned_name(self) -> tree.Name:
        example = None if self.is_word(*RESERVED) else "e.g. COUNT(*), AVG(S.price)"
        token = self.name("an attribute or an aggregate", example)
        if self.is_symbol("("):
            known = nearest(token.text, FUNCTIONS)
            hint = f"did you mean {known}? " if known else ""
            self.fail(f"unknown aggregate {token.text}", token.span, f"{hint}the aggregates are {', '.join(FUNCTIONS)}")
        if self.accept_symbol("."):
            attribute = self.attribute_name()
            self.fail(
                f"{token.text}.{attribute.text} is not an aggregate",
                token.span.to(attribute.span),
                "RETURN takes aggregates such as AVG(S.price), and attributes of GROUP-BY without a variable",
            )
        return tree.Name(token.text, token.span)

    def semantics(self) -> tree.Semantics:
        start = self.token
        word, end = "", start.span.start
        while self.token.span.start == end and (self.token.kind is TokenKind.NAME or self.is_symbol("-")):
            word, end = word + self.token.text, self.token.span.end
            self.take()
        known = {semantics.value: semantics for semantics in tree.Semantics}
        if word.lower() not in known:
            close = nearest(word, known)
            self.fail(
                f"unknown semantics {word or self.found()}",
                Span(start.span.start, max(end, start.span.end)),
                f"did you mean {close}?" if close else f"the semantics are {', '.join(known)}",
            )
        return known[word.lower()]

    def group_by(self) -> tree.GroupBy:
        if self.accept_word("GROUP"):
            if not self.accept_word("BY"):
                self.fail(f"expected BY, found {self.found()}", hint="write GROUP-BY or GROUP BY")
        elif not self.accept_word("GROUP-BY"):
            return tree.GroupBy(())
        self.clause = "GROUP-BY"
        return tree.GroupBy(self.listed(self.grouping))

    def grouping(self) -> tree.Name:
        token = self.name("an attribute")
        if self.accept_symbol("."):
            attribute = tree.name_text(self.attribute_name().text)
            self.fail("GROUP-BY takes attributes, without a variable", token.span, f"write GROUP-BY {attribute}")
        return tree.Name(token.text, token.span)

    def split_unit(self) -> None:
        """Take `10s`, which would be a name elsewhere, as a number and its unit."""
        joined = re.fullmatch(r"(\d+)([^\W\d]\w*)", self.token.text)
        if self.token.kind is TokenKind.NAME and joined:
            start, end = self.token.span.start, self.token.span.end
            middle = start + len(joined[1])
            number = Token(TokenKind.NUMBER, joined[1], Span(start, middle))
            self.tokens[self.at : self.at + 1] = [number, Token(TokenKind.NAME, joined[2], Span(middle, end))]

    def extent(self) -> tree.Extent:
        self.split_unit()
        number = self.token
        if self.is_symbol("-"):
            self.fail(f"{self.clause} must be greater than 0", hint="leave out the sign")
        if number.kind is not TokenKind.NUMBER:
            hint = f"write 0.{self.following.text}" if self.is_decimal_point() else "e.g. 10 minutes, 500 events"
            self.fail(f"expected a number, found {self.found()}", hint=hint)
        self.take()
        names = (*tree.UNITS, "events")
        if self.token.kind is not TokenKind.NAME or self.is_word("SLIDE"):
            self.fail(f"expected a unit, found {self.found()}", hint=f"the units are {', '.join(names)}")
        unit = _UNIT_NAMES.get(self.token.text.lower())
        if unit is None:
            close = nearest(self.token.text, names)
            hint = f"did you mean {close}?" if close else f"the units are {', '.join(names)}"
            self.fail(f"unknown unit {self.token.text}", hint=hint)
        span = number.span.to(self.take().span)
        if float(number.text) == 0:
            self.fail(f"{self.clause} must be greater than 0", span, "e.g. 10 minutes, 500 events")
        if not MIN_EXTENT <= float(number.text) <= MAX_EXTENT:
            hint = f"numbers from {MIN_EXTENT:.0e} to {MAX_EXTENT:.0e} can be used"
            self.fail(f"{self.clause} is out of range", span, hint)
        amount = Fraction(number.text)
        if unit == "events" and amount.denominator != 1:
            self.fail("a number of events must be whole", span, "e.g. 500 events")
        return tree.Extent(amount, unit, span)
