"""A hub for a classroom: JupyterHub with the course for people in their browsers, on one machine.

`people` (the class file: names, passwords, the sheet), `settings` (what JupyterHub is started
with), `proxy` (Node's proxy, which npm fetches once), `spawner` (who may log in; a server in a
sandbox for each person), `person` (what runs in the sandbox), `watch` (memory and processes of each
person), `handin` (copies a lab where `grade` reads it), `pages` (the pages of learners and
teacher, a service of the hub).

Every person's server runs in a sandbox like that of grading: no network, no file but the course and
the own folder. It listens on a socket that the hub hands it, so only the proxy has an address.
"""
