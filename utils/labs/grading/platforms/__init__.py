"""From a grading to the places where marks are kept: gradebooks, penalties, totals, feedback.

results reads what is graded; policy takes penalties for being late; tables fills in the CSV file
that a learning platform exported, so that it can import it; total adds up labs; feedback makes what
students get and what people mark by hand. PLATFORMS.md beside this package says what to click.
"""
