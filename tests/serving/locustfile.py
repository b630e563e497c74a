"""What locust's users ask, and the answers that they must get: in the file that ANSWERS names.

Each user asks for all prompts once, every second one as a stream; then the run ends.
"""

import json
import os
from pathlib import Path

from locust import HttpUser, events, task
from locust.exception import StopUser

ANSWERS: dict[str, str] = json.loads(Path(os.environ["ANSWERS"]).read_text())
TOTAL = int(os.environ["USERS"]) * len(ANSWERS)
seen = 0


@events.init.add_listener
def end_with_the_last(environment, **_):
    def count(**_):
        global seen
        seen += 1
        if seen == TOTAL:
            environment.runner.quit()

    events.request.add_listener(count)


class Reader(HttpUser):
    @task
    def ask(self):
        for number, (prompt, expected) in enumerate(ANSWERS.items()):
            asked = {"model": "letters", "prompt": prompt, "max_tokens": 30, "temperature": 0}
            asked["stream"] = bool(number % 2)
            with self.client.post("/v1/completions", json=asked, catch_response=True) as response:
                if asked["stream"]:
                    lines = [line[6:] for line in response.text.splitlines() if line]
                    ended = lines.pop() == "[DONE]"
                    text = "".join(json.loads(line)["choices"][0]["text"] for line in lines)
                else:
                    ended, text = True, response.json()["choices"][0]["text"]
                if not ended or text != expected:
                    response.failure(f"{prompt!r}: expected {expected!r}, found {text!r}")
        raise StopUser
