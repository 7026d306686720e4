"""Tree → checked query: clauses are checked, names resolved, attributes given their kind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NoReturn

from pipeline.errors import QueryError, Span, nearest
from pipeline.events import Kind
from pipeline.query import tree
from pipeline.query.automaton import Automaton, build
from pipeline.query.checked import Query, Use
from pipeline.query.classify import Classifier
from pipeline.query.parser import FUNCTIONS, parse

# What every row of a result has, besides the query's own columns; `exact` only where a number is not.
OWN_COLUMNS = ("window_start", "window_end", "exact")


def check(text: str, file: str = "query") -> Query:
    """Parse and check a query's text.

    >>> check("RETURN COUNT(*) PATTERN SEQ(A, B) WHERE A.x < B.x WITHIN 1 min").predicates[0].place
    'A → B'
    """
    return _Checker(text, file).query()


class _Checker:
    def __init__(self, text: str, file: str) -> None:
        self.text, self.file = text, file
        self.tree = parse(text, file)
        self.uses: dict[str, Use] = {}
        self.named: dict[str, tree.Aggregate | tree.Name] = {}  # what HAVING can call by a name

    def fail(self, message: str, span: Span, hint: str | None = None) -> NoReturn:
        raise QueryError(message, self.text, span, self.file, hint)

    def query(self) -> Query:
        self.windows()
        automaton = build(self.tree.pattern, self.text, self.file)
        variables = Variables(self, automaton)
        classifier = Classifier(automaton, self.fail)
        keys: dict[str, tree.Constant | None] = {}
        for condition in tree.conjuncts(self.tree.where):
            if isinstance(condition, tree.Equivalence):
                self.equivalence(condition, keys)
                classifier.equivalence(condition)
            else:
                self.where(condition, variables)
                classifier.add(condition)
        for name in self.tree.group_by.attributes:
            self.use(name.name, Kind.ANY, name.span)
            keys.setdefault(name.name, None)
        self.returns(variables)
        self.having(variables)
        return Query(
            tree=self.tree,
            text=self.text,
            file=self.file,
            machine=classifier.machine(),
            predicates=tuple(classifier.predicates),
            keys=tuple(keys),
            key_values={name: value for name, value in keys.items() if value is not None},
            aggregates=tuple(dict.fromkeys(self.aggregates())),
            uses=self.uses,
            warnings=tuple(classifier.warnings),
        )

    # ------------------------------------------------------------------------------------------------------ clauses

    def windows(self) -> None:
        within, slide = self.tree.within, self.tree.slide
        if slide is None:
            return
        if slide.in_events != within.in_events:
            hint = f"write SLIDE in {'events' if within.in_events else 'a unit of time'} too"
            self.fail("WITHIN and SLIDE must both count events, or both be times", slide.span, hint)
        if slide.size > within.size:
            hint = "events between two windows would be in none; SLIDE may be at most WITHIN"
            self.fail(f"SLIDE {slide} exceeds WITHIN {within}", slide.span, hint)

    def equivalence(self, condition: tree.Equivalence, keys: dict[str, tree.Constant | None]) -> None:
        for name, value in condition.items:
            kind = Kind.ANY if value is None else _kind(value)
            self.use(name, kind, condition.span)
            known = keys.get(name)
            if known is not None and value is not None and known != value:
                self.fail(f"{name} cannot be both {known} and {value}", condition.span, "leave one of them out")
            keys[name] = value or known

    def where(self, condition: tree.Condition, variables: Variables) -> None:
        nested = _equivalence_inside(condition)
        if nested:
            self.fail(f"{nested} cannot stand inside OR or NOT", nested.span, "join it to the others by AND")
        for comparison in tree.comparisons(condition):
            for leaf in (*tree.leaves(comparison.left), *tree.leaves(comparison.right)):
                if isinstance(leaf, tree.Aggregate):
                    self.fail(f"{leaf} cannot stand in WHERE", leaf.span, "conditions on aggregates go in HAVING")
                if isinstance(leaf, tree.Name):
                    hint = f"write variable.{leaf} for an attribute, '{leaf.name}' for a text"
                    if leaf.name.upper() == "NULL":
                        hint = "there is no NULL; a comparison with a missing value is false"
                    self.fail(f"{leaf} has no variable", leaf.span, hint)
                if isinstance(leaf, tree.Attribute):
                    variables.known(leaf.variable, leaf.span)
            self.kinds(comparison)
        if not any(tree.attributes(condition)):
            hint = "a condition compares attributes of events: variable.attribute"
            self.fail("this condition names no variable", condition.span, hint)

    def returns(self, variables: Variables) -> None:
        grouped: set[str] = set()
        for name in self.tree.group_by.attributes:
            if name.name in OWN_COLUMNS:
                self.fail(f"every result has a column {name} of its own", name.span, "rename it in the data")
            if name.name in grouped:
                self.fail(f"{name} is in GROUP-BY twice", name.span, "leave one of them out")
            grouped.add(name.name)
        labels = set(grouped)
        for item in self.tree.returns:
            if isinstance(item.value, tree.Aggregate):
                self.aggregate(item.value, variables)
            elif item.value.name not in grouped:
                close = nearest(item.value.name, grouped)
                hint = f"did you mean {close}?" if close else f"add GROUP-BY {item.value}, or aggregate it"
                if item.value.name.upper() in FUNCTIONS:
                    function = item.value.name.upper()
                    hint = f"write {function}(*)" if function == "COUNT" else f"write {function}(variable.attribute)"
                self.fail(f"{item.value} is not in GROUP-BY", item.value.span, hint)
            if item.label in OWN_COLUMNS:
                self.fail(f"every result has a column {item.label} of its own", item.span, "take another alias")
            same = isinstance(item.value, tree.Name) and item.label == item.value.name
            if item.label in labels and not same:
                self.fail(f"two columns of the result are named {item.label}", item.span, "give one an alias: AS …")
            labels.add(item.label)

    def having(self, variables: Variables) -> None:
        if self.tree.having is None:
            return
        self.named = {item.label: item.value for item in self.tree.returns}
        equivalence = _equivalence_inside(self.tree.having)
        if equivalence:
            self.fail(f"{equivalence} cannot stand in HAVING", equivalence.span, "equivalences go in WHERE")
        known = {name.name for name in self.tree.group_by.attributes} | {item.label for item in self.tree.returns}
        for comparison in tree.comparisons(self.tree.having):
            for leaf in (*tree.leaves(comparison.left), *tree.leaves(comparison.right)):
                if isinstance(leaf, tree.Attribute):
                    self.fail(f"{leaf} cannot stand in HAVING", leaf.span, "HAVING compares aggregates; use WHERE")
                if isinstance(leaf, tree.Aggregate):
                    self.aggregate(leaf, variables)
                if isinstance(leaf, tree.Name) and leaf.name not in known:
                    close = nearest(leaf.name, known)
                    others = "HAVING knows aggregates, their aliases, and GROUP-BY attributes"
                    hint = f"did you mean {close}?" if close else others
                    self.fail(f"unknown name {leaf} in HAVING", leaf.span, hint)
            self.kinds(comparison)

    def aggregate(self, aggregate: tree.Aggregate, variables: Variables) -> None:
        if aggregate.variable is None:
            return
        variables.known(aggregate.variable, aggregate.span)
        if aggregate.variable not in variables.positive:
            hint = "a negated event is in no trend; aggregate one that is"
            self.fail(f"{aggregate} is of a negated variable", aggregate.span, hint)
        if aggregate.attribute is not None:
            kind = {"SUM": Kind.NUMBER, "AVG": Kind.NUMBER, "COUNT": Kind.ANY}.get(aggregate.function, Kind.ORDERED)
            self.use(aggregate.attribute, kind, aggregate.span)

    def aggregates(self) -> Iterator[tree.Aggregate]:
        for item in self.tree.returns:
            if isinstance(item.value, tree.Aggregate):
                yield item.value
        if self.tree.having is not None:
            for comparison in tree.comparisons(self.tree.having):
                for leaf in (*tree.leaves(comparison.left), *tree.leaves(comparison.right)):
                    if isinstance(leaf, tree.Aggregate):
                        yield leaf

    # -------------------------------------------------------------------------------------------------------- kinds

    def use(self, attribute: str, kind: Kind, span: Span) -> None:
        known = self.uses.get(attribute)
        if known is None or known.kind is Kind.ANY or (known.kind is Kind.ORDERED and kind is not Kind.ANY):
            self.uses[attribute] = Use(kind, span)
        elif kind not in (Kind.ANY, Kind.ORDERED, known.kind):
            hint = "an attribute is either always a number or always a text"
            self.fail(f"{attribute} is used as a {kind.value} here, but as a {known.kind.value} before", span, hint)

    def kinds(self, comparison: tree.Comparison) -> None:
        sides = tuple(self.resolved(side) for side in (comparison.left, comparison.right))
        known = [self.kind_of(side) for side in sides]
        if {Kind.NUMBER, Kind.TEXT} <= set(known):
            hint = "numbers stand without quotes, text in single quotes"
            self.fail("this compares a text with a number", comparison.span, hint)
        kind = known[0] if known[0] is not Kind.ANY else known[1]
        if kind is Kind.ANY:
            kind = self.kind_before(sides, comparison.op)
        for side in sides:
            if isinstance(side, tree.Attribute):
                self.use(side.attribute, kind, side.span)
            if isinstance(side, tree.Name):
                self.use(side.name, kind, side.span)
            if isinstance(side, tree.Aggregate) and side.attribute and side.function in ("MIN", "MAX"):
                self.use(side.attribute, kind, side.span)

    def kind_before(self, sides: Iterable[tree.Expression], op: str) -> Kind:
        """The kind of attributes that are compared with each other: what the query says of one of them elsewhere."""
        names = [side.attribute for side in sides if isinstance(side, tree.Attribute)]
        before = [self.uses[name].kind for name in names if name in self.uses]
        decided = [kind for kind in before if kind in (Kind.NUMBER, Kind.TEXT)]
        return decided[0] if decided else Kind.ANY if op in ("=", "!=") else Kind.ORDERED

    def resolved(self, expression: tree.Expression) -> tree.Expression:
        """What an alias in HAVING stands for; a name that is left is a GROUP-BY attribute."""
        if not isinstance(expression, tree.Name):
            return expression
        return replace(self.named.get(expression.name, expression), span=expression.span)

    def kind_of(self, expression: tree.Expression) -> Kind:
        match self.resolved(expression):
            case tree.Constant() as constant:
                return _kind(constant)
            case tree.Arithmetic(_, left, right):
                self.number(left)
                self.number(right)
                return Kind.NUMBER
            case tree.Minus(operand):
                self.number(operand)
                return Kind.NUMBER
            case tree.Aggregate(function) if function not in ("MIN", "MAX"):
                return Kind.NUMBER
            case _:
                return Kind.ANY

    def number(self, operand: tree.Expression) -> None:
        if self.kind_of(operand) is Kind.TEXT:
            hint = "+ - * / are for numbers, which stand without quotes"
            self.fail(f"{operand} is a text, and cannot be calculated with", operand.span, hint)
        operand = self.resolved(operand)
        if isinstance(operand, tree.Attribute):
            self.use(operand.attribute, Kind.NUMBER, operand.span)
        if isinstance(operand, tree.Name):
            self.use(operand.name, Kind.NUMBER, operand.span)
        if isinstance(operand, tree.Aggregate) and operand.attribute:
            self.use(operand.attribute, Kind.NUMBER, operand.span)


class Variables:
    """The names that the pattern binds, for finding what a condition or an aggregate means."""

    def __init__(self, checker: _Checker, automaton: Automaton) -> None:
        self.checker = checker
        self.positive = {state.variable for state in automaton.states if state.variable is not None}
        self.types = dict(_typed_variables(automaton))
        self.all = self.positive | set(_negated_variables(automaton))

    def known(self, name: str, span: Span) -> None:
        """Fail where nothing in the pattern has this name."""
        if name in self.all:
            return
        close = nearest(name, self.all)
        hint = f"did you mean {close}?" if close else f"the pattern has {', '.join(sorted(self.all)) or 'no variables'}"
        if name in self.types:
            variable = self.types[name]
            hint = f"{name} is a type; its variable is {variable}"
            if variable is None:
                hint = f"ANY(…) needs a variable: ANY({name}, …) v"
        self.checker.fail(f"unknown variable {name}", span, hint)


def _typed_variables(automaton: Automaton) -> Iterator[tuple[str, str | None]]:
    for state in automaton.states:
        yield from ((name, state.variable) for name in state.types)
    for negation in automaton.negations:
        yield from _typed_variables(negation.automaton)


def _negated_variables(automaton: Automaton) -> Iterator[str]:
    for negation in automaton.negations:
        yield from (state.variable for state in negation.automaton.states if state.variable is not None)
        yield from _negated_variables(negation.automaton)


def _kind(constant: tree.Constant) -> Kind:
    return Kind.TEXT if isinstance(constant.value, str) else Kind.NUMBER


def _equivalence_inside(condition: tree.Condition) -> tree.Equivalence | None:
    match condition:
        case tree.Equivalence():
            return condition
        case tree.AllOf(parts) | tree.AnyOf(parts):
            return next(filter(None, map(_equivalence_inside, parts)), None)
        case tree.Complement(part):
            return _equivalence_inside(part)
        case _:
            return None
