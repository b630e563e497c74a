"""A teacher's kit: what somebody needs who gives the course to a class, made for one class.

- `kit`: the class folder, from the catalogue, the tracks and the pages below `pages/`
- `slides`: a lesson as slides with speaker notes
- `exam`: questions of the quizzes and with drawn numbers, and the key apart
- `drawn`: the questions with drawn numbers, most from the cases of the labs
- `guide.yaml`: what to say in each lesson, and what is asked, written by hand

May import: every room below. Used by: `course.py class`.
"""
