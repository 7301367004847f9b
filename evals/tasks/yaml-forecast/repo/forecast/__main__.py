import argparse

from forecast import Experiment, Settings

parser = argparse.ArgumentParser(prog="forecast")
parser.add_argument("--config", required=True)
parser.add_argument("--output", default="forecaster.pt")
args = parser.parse_args()
experiment = Experiment(Settings.read(args.config))
experiment.run()
experiment.save(args.output)
