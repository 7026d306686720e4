"""Tokens → tree: a recursive-descent parser whose errors say what was expected and what is probably meant."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import NoReturn, TypeVar

from pipeline.errors import QueryError, Span, nearest
from pipeline.query import tree
from pipeline.query.tokens import RESERVED, Token, TokenKind, tokenize

CLAUSES = ("RETURN", "PATTERN", "FROM", "SEMANTICS", "WHERE", "GROUP-BY", "HAVING", "WITHIN", "SLIDE")
FUNCTIONS = ("COUNT", "SUM", "AVG", "MIN", "MAX")
OPERATORS = ("SEQ", "OR", "AND", "ANY", "EXISTS")
MAX_NESTING = 50  # of parentheses; each takes up to 13 calls, of Python's 1000
MAX_DEPTH = 100  # of the tree, which chains such as A++ and a + b + c deepen too
MAX_REPEAT = 1000
MAX_EXTENT, MIN_EXTENT = 1e15, 1e-15

# What may stand after a clause besides the next one.
_GOES_ON = {"RETURN": ("','", "AS"), "WHERE": ("AND", "OR"), "GROUP-BY": ("','",), "HAVING": ("AND", "OR")}

_UNIT_NAMES = {
    **{name: unit for unit in (*tree.UNITS, "events") for name in (unit, unit[:-1])},
    **{"ms": "milliseconds", "s": "seconds", "sec": "seconds", "secs": "seconds", "min": "minutes", "mins": "minutes"},
    **{"h": "hours", "hr": "hours", "hrs": "hours", "d": "days"},
}

T = TypeVar("T")
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


class _Parser:
    def __init__(self, text: str, file: str) -> None:
        self.text, self.file = text, file
        self.tokens = tokenize(text, file)
        self.at = 0
        self.depth = 0
        self.clause = "RETURN"  # the clause being read

    # ------------------------------------------------------------------------------------------------------- tokens

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

    def nested(self, inside: Callable[[], T]) -> T:
        self.depth += 1
        if self.depth > MAX_NESTING:
            self.fail(f"more than {MAX_NESTING} levels of nesting", hint="leave out parentheses that change nothing")
        result = inside()
        self.depth -= 1
        return result

    # ------------------------------------------------------------------------------------------------------ clauses

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

    def aggregate(self) -> tree.Aggregate:
        start = self.take()
        function = start.text.upper()
        opening = self.expect_symbol("(")
        variable = attribute = None
        form = "COUNT(*), COUNT(S) or COUNT(S.price)" if function == "COUNT" else f"{function}(S.price)"
        argument = self.token
        if not self.accept_symbol("*"):
            variable = self.name("a variable" if function != "COUNT" else "* or a variable", f"e.g. {form}").text
            if self.accept_symbol("."):
                attribute = self.attribute_name().text
        if function != "COUNT" and attribute is None:
            self.fail(f"{function} needs a variable and an attribute", argument.span, f"e.g. {form}")
        end = self.close(")", opening, hint=f"e.g. {form}")
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

    def parenthesised(self, one: Callable[[], T]) -> tuple[T, ...]:
        opening = self.expect_symbol("(")
        parts = self.listed(one)
        self.close(")", opening, "or ','")
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
        self.fail(f"expected a comparison (= != < <= > >=) after {value}, found {self.found()}")

    def as_expression(self, value: tree.Condition | tree.Expression) -> tree.Expression:
        if isinstance(value, tree.Condition):
            hint = "conditions are joined by AND, OR, NOT"
            self.fail("a condition cannot be compared or calculated with", value.span, hint)
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
            if self.is_symbol("=", "!=", "<", "<=", ">", ">="):
                self.fail(f"expected a value, found {self.found()}", hint="the comparisons are = != < <= > >=")
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
            end = self.close(")", token)
            return replace(inner, span=token.span.to(end.span))
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
            self.fail(f"expected a condition or a value, found {self.found()}", hint=self.valueless())
        variable = self.name("a variable")
        if following:
            self.expect_symbol(")", hint=f"write NEXT({tree.name_text(variable.text)}).attribute")
        if not self.is_symbol(".") and not following:
            if self.is_symbol("("):
                hint = "conditions know NEXT(variable).attribute"
                self.fail(f"unknown function {variable.text}", variable.span, hint)
            return tree.Name(variable.text, variable.span)
        self.expect_symbol(".", "and an attribute", f"e.g. NEXT({tree.name_text(variable.text)}).price")
        attribute = self.attribute_name()
        return tree.Attribute(variable.text, attribute.text, following, token.span.to(attribute.span))

    def valueless(self) -> str | None:
        """What was probably meant by something that is neither a condition nor a value."""
        if self.is_decimal_point():
            return f"write 0.{self.following.text}"
        if self.is_word("NEXT"):
            return "write NEXT(variable).attribute"
        return "write NOT" if self.is_symbol("!") else None

    def attribute_name(self) -> Token:
        # Right after a dot no clause can begin, so that S.from and L.end need no backquotes.
        if self.token.kind is TokenKind.NAME and self.token.span.start == self.previous.span.end:
            return self.take()
        return self.name("an attribute")

    def number(self) -> tree.Constant:
        token = self.take()
        if math.isinf(float(token.text)):
            self.fail("this number is too large", token.span, "numbers go up to 1.7e308")
        return tree.Constant(int(token.text) if token.text.isdecimal() else float(token.text), token.span)

    def equivalence(self) -> tree.Equivalence:
        opening = self.take()
        items = self.listed(self.equivalence_item)
        end = self.close("]", opening, "or ','", "[…] takes attributes, alone or with a value: [a, b = 'v']")
        return tree.Equivalence(items, opening.span.to(end.span))

    def equivalence_item(self) -> tuple[str, tree.Constant | None]:
        name = self.name("an attribute")
        if self.accept_symbol("."):
            attribute = tree.name_text(self.attribute_name().text)
            self.fail("[…] takes attributes, without a variable", name.span, f"write [{attribute}]")
        if not self.accept_symbol("="):
            return name.text, None
        if self.token.kind is TokenKind.TEXT:
            return name.text, tree.Constant(self.token.text, self.take().span)
        minus = self.accept_symbol("-")
        if self.token.kind is not TokenKind.NUMBER:
            self.fail(f"expected a value, found {self.found()}", hint="text goes in single quotes: [name = 'John']")
        constant = self.number()
        return name.text, tree.Constant(-constant.value, constant.span) if minus else constant  # type: ignore[operator]
