"""The part of the launcher that talks to AWS. Nothing here runs unless a command asks for it."""
