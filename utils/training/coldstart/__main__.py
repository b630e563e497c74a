"""`python -m utils.coldstart SETTINGS`: the training process that `start` starts."""

from utils.coldstart.training import main

if __name__ == "__main__":
    main()
