from forecast.experiment import Experiment
from forecast.settings import Settings

__all__ = ["Experiment", "Settings"]
