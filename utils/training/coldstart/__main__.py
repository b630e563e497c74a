"""`python -m utils.training.coldstart SETTINGS`: the training process that `start` starts."""

from utils.training.coldstart.training import main

if __name__ == "__main__":
    main()
