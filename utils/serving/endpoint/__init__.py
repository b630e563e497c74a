"""The engine behind HTTP: the part of OpenAI's interface that most clients use, on this machine.

    python3 course.py serve

- `protocol`: what may be asked and what is answered, as OpenAI writes it; errors in its shape
- `texts`: from text to tokens and back while they come; stops, which are texts
- `driver`: the engine in a thread of its own, for requests of an asyncio loop
- `metrics`: what Prometheus reads
- `app`: the addresses, and a server that begins and ends
- `models`: what is served: the course's small model, or a checkpoint's folder. Imports torch.
"""
