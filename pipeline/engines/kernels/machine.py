"""The stack machine that tests a condition on two events; plain Python that numba compiles."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pipeline.events import Array

LOAD_X, LOAD_Y, CONSTANT = 0, 1, 2  # push a value of the first event, of the second, or a constant
ADD, SUB, MUL, DIV = 3, 4, 5, 6
EQ, NE, LT, LE, GT, GE = 7, 8, 9, 10, 11, 12
AND, OR, NOT = 13, 14, 15


class Code(NamedTuple):
    """Programs one after the other, and what they load."""

    start: Array  # where each program begins
    op: Array
    argument: Array
    leaf: Array  # a row a value that depends on one event
    constant: Array
    stack: Array


def holds(code: Code, program: int, x: int, y: int) -> bool:
    """Whether a program's condition holds for the events x and y; NaN is null, and no comparison with it holds."""
    stack = code.stack
    top = -1
    for at in range(code.start[program], code.start[program + 1]):
        op = code.op[at]
        if op == LOAD_X:
            top += 1
            stack[top] = code.leaf[code.argument[at], x]
        elif op == LOAD_Y:
            top += 1
            stack[top] = code.leaf[code.argument[at], y]
        elif op == CONSTANT:
            top += 1
            stack[top] = code.constant[code.argument[at]]
        elif op == NOT:
            stack[top] = 1.0 - stack[top]
        else:
            right = stack[top]
            top -= 1
            left = stack[top]
            if op == LT:
                stack[top] = left < right
            elif op == GT:
                stack[top] = left > right
            elif op == EQ:
                stack[top] = left == right
            elif op == LE:
                stack[top] = left <= right
            elif op == GE:
                stack[top] = left >= right
            elif op == NE:
                stack[top] = left < right or left > right
            elif op == AND:
                stack[top] = left * right
            elif op == OR:
                stack[top] = max(left, right)
            elif op == ADD:
                stack[top] = left + right
            elif op == SUB:
                stack[top] = left - right
            elif op == MUL:
                stack[top] = left * right
            elif right == 0.0:
                stack[top] = np.nan
            else:
                stack[top] = left / right
    return bool(stack[0] > 0.5)
