"""Tokens → condition: AND, OR, NOT, comparisons, arithmetic, and the values that these stand between."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from pipeline.query import tree
from pipeline.query.cursor import Cursor
from pipeline.query.tokens import Token, TokenKind

FUNCTIONS = ("COUNT", "SUM", "AVG", "MIN", "MAX")


class ConditionParser(Cursor):
    """A method for each rule of a condition's grammar, from the loosest to the tightest.

    Parentheses may hold a condition or a value, and which is known only after them: the rules in between give either.
    """

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
