"""Questions of lab 99."""

from utils.course.quiz import ClaimQuestion, Question, digest

QUIZ = {
    "q1": Question(
        "What is twice two?",
        {"a": ("three", "count again"), "b": ("four", "2 + 2")},
        digest("lab99", "q1", "b"),
    ),
    "q2": Question(
        "What is twice <three>?",
        {"a": ("six", "3 + 3"), "b": ("five", "count again")},
        digest("lab99", "q2", "a"),
    ),
}

CLAIMS = {"c1": ClaimQuestion("A-011", {"confirmed": "look for the launch in 2024"})}
