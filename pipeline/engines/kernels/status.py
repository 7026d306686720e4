"""What a kernel's loop returns with: it stops after a number of steps, or where its caller must do something."""

DONE = 0
MORE = 1  # the steps are used up
DRAIN = 2  # results are to be taken away
LIMIT = 3  # a limit is reached
GROW = 4  # integers need more digits
