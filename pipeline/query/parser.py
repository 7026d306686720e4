"""Tokens → tree: a recursive-descent parser whose errors say what was expected and what is probably meant."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import NoReturn, TypeVar

from pipeline.errors import QueryError, Span, nearest
from pipeline.query import tree
from pipeline.query.tokens import RESERVED, Token, TokenKind, tokenize

CLAUSES = ("RETURN", "PATTERN", "FROM", "SEMANTICS", "WHERE", "GROUP-BY", "HAVING", "WITHIN", "SLIDE")
FUNCTIONS = ("COUNT", "SUM", "AVG", "MIN", "MAX")
MAX_NESTING = 100
MAX_REPEAT = 1000

_UNIT_NAMES = {
    **{name: unit for unit in (*tree.UNITS, "events") for name in (unit, unit[:-1])},
    **{"ms": "milliseconds", "s": "seconds", "sec": "seconds", "min": "minutes", "h": "hours", "d": "days"},
}

T = TypeVar("T")


def parse(text: str, file: str = "query") -> tree.Query:
    """Parse a query's text.

    >>> print(parse("return count(*) event A+ within 1 min"))
    RETURN    COUNT(*)
    PATTERN   A+
    SEMANTICS skip-till-any-match
    WITHIN    1 minute
    """
    return _Parser(text, file).query()


class _Parser:
    def __init__(self, text: str, file: str) -> None:
        self.text, self.file = text, file
        self.tokens = tokenize(text, file)
        self.at = 0
        self.depth = 0

    # ------------------------------------------------------------------------------------------------------- tokens

    @property
    def token(self) -> Token:
        return self.tokens[self.at]

    @property
    def previous(self) -> Token:
        return self.tokens[self.at - 1]

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
        return token.kind is TokenKind.QUOTED or (
            token.kind is TokenKind.NAME and token.text.upper() not in RESERVED
        )

    def opens(self, *words: str) -> bool:
        """Whether this is one of the words with its opening parenthesis."""
        following = self.tokens[min(self.at + 1, len(self.tokens) - 1)]
        return self.is_word(*words) and following.kind is TokenKind.SYMBOL and following.text == "("

    def accept_word(self, word: str) -> bool:
        found = self.is_word(word)
        self.at += found
        return found

    def accept_symbol(self, symbol: str) -> bool:
        found = self.is_symbol(symbol)
        self.at += found
        return found

    def expect_symbol(self, symbol: str, why: str = "") -> Token:
        if not self.is_symbol(symbol):
            self.fail(f"expected {symbol!r}{' ' + why if why else ''}, found {self.found()}")
        return self.take()

    def found(self) -> str:
        token = self.token
        if token.kind is TokenKind.END:
            return "the end of the query"
        return self.text[token.span.start : token.span.end]

    def fail(
        self, message: str, span: Span | None = None, hint: str | None = None, meant: Iterable[str] = ()
    ) -> NoReturn:
        if hint is None and self.token.kind in (TokenKind.NAME, TokenKind.QUOTED) and span is None:
            word = nearest(self.token.text, meant)
            hint = f"did you mean {word}?" if word else None
        raise QueryError(message, self.text, span or self.token.span, self.file, hint)

    def name(self, what: str) -> Token:
        if self.is_name():
            return self.take()
        reserved = self.token.kind is TokenKind.NAME
        self.fail(
            f"expected {what}, found {self.found()}",
            hint=f"{self.found()} is a reserved word; write it in backquotes to use it as a name" if reserved else None,
        )

    def listed(self, one: Callable[[], T]) -> tuple[T, ...]:
        items = [one()]
        while self.accept_symbol(","):
            items.append(one())
        return tuple(items)

    def nested(self, inside: Callable[[], T]) -> T:
        self.depth += 1
        if self.depth > MAX_NESTING:
            self.fail(f"more than {MAX_NESTING} levels of nesting")
        result = inside()
        self.depth -= 1
        return result

    # ------------------------------------------------------------------------------------------------------ clauses

    def query(self) -> tree.Query:
        if not self.is_word("RETURN"):
            self.fail(f"expected RETURN, found {self.found()}", meant=["RETURN"])
        self.take()
        returns = self.listed(self.item)
        if not self.is_word("PATTERN", "EVENT"):
            self.misplaced("',', AS or PATTERN", ["PATTERN", "EVENT", "AS"])
        self.take()
        pattern = self.pattern()
        source = self.name("the name of a dataset").text if self.accept_word("FROM") else None
        semantics = self.semantics() if self.accept_word("SEMANTICS") else tree.Semantics.ANY
        where = self.condition() if self.accept_word("WHERE") else None
        group_by = self.group_by()
        having = self.condition() if self.accept_word("HAVING") else None
        if not self.is_word("WITHIN"):
            self.misplaced("WITHIN", self.possible())
        self.take()
        within = self.extent()
        slide = self.extent() if self.accept_word("SLIDE") else None
        if self.token.kind is not TokenKind.END:
            self.misplaced("SLIDE or the end of the query" if slide is None else "the end of the query", ["SLIDE"])
        return tree.Query(returns, pattern, source, semantics, where, group_by, having, within, slide)

    def possible(self) -> list[str]:
        """The words that a misspelt one may stand for: clauses, or what goes on with the clause before."""
        return [*CLAUSES[2:], "AND", "OR"]

    def misplaced(self, expected: str, meant: list[str]) -> NoReturn:
        word = "GROUP-BY" if self.is_word("GROUP") else self.token.text.upper()
        if self.token.kind is TokenKind.NAME and word in CLAUSES:
            order = "clauses come once each, in the order " + ", ".join(CLAUSES)
            if expected == "WITHIN" or expected.endswith("end of the query"):
                self.fail(f"{word} cannot stand here: expected {expected}", hint=order)
        hint = "every query needs WITHIN, e.g. WITHIN 10 minutes SLIDE 1 minute"
        missing = expected == "WITHIN" and self.token.kind is TokenKind.END
        self.fail(f"expected {expected}, found {self.found()}", meant=meant, hint=hint if missing else None)

    def item(self) -> tree.Item:
        start = self.token.span
        value = self.aggregate() if self.opens(*FUNCTIONS) else self.returned_name()
        alias = self.name("an alias").text if self.accept_word("AS") else None
        return tree.Item(value, alias, start.to(self.previous.span))

    def returned_name(self) -> tree.Name:
        token = self.name("an attribute or an aggregate")
        if self.is_symbol("("):
            known = nearest(token.text, FUNCTIONS)
            hint = f"did you mean {known}?" if known else f"the aggregates are {', '.join(FUNCTIONS)}"
            self.fail(f"unknown aggregate {token.text}", token.span, hint)
        if self.is_symbol("."):
            self.fail(
                f"{token.text}.… is not an aggregate",
                token.span,
                "RETURN takes aggregates such as AVG(S.price), and attributes of GROUP-BY without a variable",
            )
        return tree.Name(token.text, token.span)

    def aggregate(self) -> tree.Aggregate:
        start = self.take()
        function = start.text.upper()
        self.expect_symbol("(")
        variable = attribute = None
        if self.is_symbol("*"):
            star = self.take()
            if function != "COUNT":
                self.fail(f"{function} needs an attribute", star.span, f"write {function}(variable.attribute)")
        else:
            variable = self.name("a variable").text
            if self.accept_symbol("."):
                attribute = self.attribute_name().text
            elif function != "COUNT":
                self.fail(f"{function} needs an attribute", hint=f"write {function}({variable}.attribute)")
        end = self.expect_symbol(")")
        return tree.Aggregate(function, variable, attribute, start.span.to(end.span))

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
                self.fail(f"expected BY, found {self.found()}", meant=["BY"])
        elif not self.accept_word("GROUP-BY"):
            return tree.GroupBy(())
        return tree.GroupBy(self.listed(self.grouping))

    def grouping(self) -> tree.Name:
        token = self.name("an attribute")
        if self.is_symbol("."):
            self.fail("GROUP-BY takes attributes, without a variable", token.span, "write the attribute's name alone")
        return tree.Name(token.text, token.span)

    def extent(self) -> tree.Extent:
        number = self.token
        if number.kind is not TokenKind.NUMBER:
            self.fail(f"expected a number, found {self.found()}", hint="e.g. 10 minutes, 30 seconds, 500 events")
        self.take()
        amount = Fraction(number.text)
        if self.token.kind is not TokenKind.NAME or self.is_word("SLIDE"):
            self.fail(f"expected a unit, found {self.found()}", hint="units: " + ", ".join((*tree.UNITS, "events")))
        unit = _UNIT_NAMES.get(self.token.text.lower())
        if unit is None:
            self.fail(f"unknown unit {self.token.text}", meant=_UNIT_NAMES)
        span = number.span.to(self.take().span)
        if amount <= 0:
            self.fail("a window's length must be greater than 0", span)
        if unit == "events" and amount.denominator != 1:
            self.fail("a number of events must be whole", span)
        return tree.Extent(amount, unit, span)

    # ----------------------------------------------------------------------------------------------------- patterns

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
        low = high = self.times()
        if self.accept_symbol(","):
            high = None if self.is_symbol("}") else self.times()
        span = token.span.to(self.expect_symbol("}", "after the number of times").span)
        if high is not None and high < low:
            self.fail("the most times must not be fewer than the least", span)
        if high == 0:
            self.fail("this repeats the pattern 0 times", span)
        return low, high  # type: ignore[return-value]

    def times(self) -> int | None:
        token = self.token
        if token.kind is not TokenKind.NUMBER or not token.text.isdecimal():
            self.fail(f"expected a number of times, found {self.found()}", hint="e.g. {2}, {2,} or {2,5}")
        if int(token.text) > MAX_REPEAT:
            self.fail(f"at most {MAX_REPEAT} times can be asked for")
        return int(self.take().text)

    def primary(self) -> tree.Pattern:
        start = self.token
        if self.accept_symbol("("):
            inner = self.pattern()
            self.expect_symbol(")", "after the pattern")
            return inner
        if self.opens("ANY"):
            self.take()
            types = self.parenthesised(lambda: self.name("a type").text)
            if len(types) == 1:
                return self.occurrence(types, start.span, types[0])
            return self.occurrence(types, start.span, None)
        if self.opens("SEQ", "OR", "AND"):
            operator = {"SEQ": tree.Seq, "OR": tree.Or, "AND": tree.And}[self.take().text.upper()]
            parts = self.parenthesised(self.pattern)
            return operator(parts, start.span.to(self.previous.span))
        token = self.name("a type, SEQ, OR, ANY, ! or '('")
        if self.is_symbol("("):
            known = nearest(token.text, ["SEQ", "OR", "AND", "ANY", "EXISTS"])
            self.fail(f"unknown operator {token.text}", token.span, f"did you mean {known}?" if known else None)
        return self.occurrence((token.text,), token.span, token.text)

    def parenthesised(self, one: Callable[[], T]) -> tuple[T, ...]:
        self.expect_symbol("(")
        parts = self.listed(one)
        self.expect_symbol(")", "or ','")
        return parts

    def occurrence(self, types: tuple[str, ...], start: Span, variable: str | None) -> tree.Occurrence:
        named = self.is_name()
        if named:
            variable = self.take().text
        return tree.Occurrence(types, variable, named, start.to(self.previous.span))

    # --------------------------------------------------------------------------------------------------- conditions

    def condition(self) -> tree.Condition:
        return self.as_condition(self.nested(self.disjunction))

    def as_condition(self, value: tree.Condition | tree.Expression) -> tree.Condition:
        if isinstance(value, tree.Condition):
            return value
        if isinstance(value, tree.Name):
            self.fail(f"{value} has no variable", value.span, "an attribute is written variable.attribute")
        self.fail(f"expected a comparison (= != < <= > >=), found {self.found()}")

    def as_expression(self, value: tree.Condition | tree.Expression) -> tree.Expression:
        if isinstance(value, tree.Condition):
            self.fail("a condition cannot be compared or calculated with", value.span)
        return value

    def disjunction(self) -> tree.Condition | tree.Expression:
        return self.chain("OR", tree.AnyOf, self.conjunction)

    def conjunction(self) -> tree.Condition | tree.Expression:
        return self.chain("AND", tree.AllOf, self.negation)

    def chain(
        self,
        word: str,
        node: type[tree.AllOf] | type[tree.AnyOf],
        operand: Callable[[], tree.Condition | tree.Expression],
    ) -> tree.Condition | tree.Expression:
        first = operand()
        if not self.is_word(word):
            return first
        parts = [self.as_condition(first)]
        while self.accept_word(word):
            parts.append(self.as_condition(operand()))
        return node(tuple(parts), parts[0].span.to(parts[-1].span))

    def negation(self) -> tree.Condition | tree.Expression:
        start = self.token.span
        if self.accept_word("NOT"):
            part = self.as_condition(self.nested(self.negation))
            return tree.Complement(part, start.to(part.span))
        return self.comparison()

    def comparison(self) -> tree.Condition | tree.Expression:
        first = self.sum()
        operands, operators = [first], []
        while self.is_symbol("=", "!=", "<", "<=", ">", ">="):
            operators.append(self.take().text)
            if self.is_symbol("=", ">"):
                self.fail(f"expected a value, found {self.found()}", hint="comparisons are = != < <= > >=")
            operands.append(self.sum())
        if not operators:
            return first
        values = [self.as_expression(operand) for operand in operands]
        parts = tuple(
            tree.Comparison(op, left, right, left.span.to(right.span))
            for op, left, right in zip(operators, values, values[1:], strict=False)
        )
        return parts[0] if len(parts) == 1 else tree.AllOf(parts, parts[0].span.to(parts[-1].span))

    def sum(self) -> tree.Condition | tree.Expression:
        return self.arithmetic(("+", "-"), lambda: self.arithmetic(("*", "/"), self.signed))

    def arithmetic(
        self, symbols: tuple[str, ...], operand: Callable[[], tree.Condition | tree.Expression]
    ) -> tree.Condition | tree.Expression:
        left = operand()
        while self.is_symbol(*symbols):
            op = self.take().text
            left, right = self.as_expression(left), self.as_expression(operand())
            left = tree.Arithmetic(op, left, right, left.span.to(right.span))
        return left

    def signed(self) -> tree.Condition | tree.Expression:
        start = self.token.span
        if self.accept_symbol("-"):
            operand = self.as_expression(self.nested(self.signed))
            return tree.Minus(operand, start.to(operand.span))
        return self.operand()

    def operand(self) -> tree.Condition | tree.Expression:
        token = self.token
        if self.accept_symbol("("):
            inner = self.nested(self.disjunction)
            self.expect_symbol(")")
            return inner
        if self.is_symbol("["):
            return self.equivalence()
        if token.kind is TokenKind.NUMBER:
            return self.number()
        if token.kind is TokenKind.TEXT:
            return tree.Constant(self.take().text, token.span)
        if self.opens(*FUNCTIONS):
            return self.aggregate()
        following = self.opens("NEXT")
        if following:
            self.take()
            self.expect_symbol("(")
        elif not self.is_name():
            self.fail(f"expected a condition or a value, found {self.found()}")
        variable = self.name("a variable")
        if following:
            self.expect_symbol(")")
        if not self.is_symbol(".") and not following:
            if self.is_symbol("("):
                self.fail(f"unknown function {variable.text}", variable.span, "conditions know NEXT(variable).attribute")
            return tree.Name(variable.text, variable.span)
        self.expect_symbol(".", "and an attribute")
        attribute = self.attribute_name()
        return tree.Attribute(variable.text, attribute.text, following, token.span.to(attribute.span))

    def attribute_name(self) -> Token:
        # After a dot no clause can begin, so that S.from and L.end need no backquotes.
        if self.token.kind is TokenKind.NAME:
            return self.take()
        return self.name("an attribute")

    def number(self) -> tree.Constant:
        token = self.take()
        value = int(token.text) if token.text.isdecimal() else float(token.text)
        if math.isinf(value):
            self.fail("this number is too large", token.span)
        return tree.Constant(value, token.span)

    def equivalence(self) -> tree.Equivalence:
        start = self.take().span
        items = self.listed(self.equivalence_item)
        end = self.expect_symbol("]", "or ','")
        return tree.Equivalence(items, start.to(end.span))

    def equivalence_item(self) -> tuple[str, tree.Constant | None]:
        name = self.name("an attribute")
        if self.is_symbol("."):
            self.fail("[…] takes attributes, without a variable", name.span, f"write [{self.tokens[self.at + 1].text}]")
        if not self.accept_symbol("="):
            return name.text, None
        if self.token.kind is TokenKind.TEXT:
            return name.text, tree.Constant(self.token.text, self.take().span)
        minus = self.accept_symbol("-")
        if self.token.kind is not TokenKind.NUMBER:
            self.fail(f"expected a value, found {self.found()}", hint="text goes in single quotes: [name = 'John']")
        constant = self.number()
        return name.text, tree.Constant(-constant.value, constant.span) if minus else constant  # type: ignore[operator]
