from dataclasses import dataclass, field

import yaml


@dataclass
class Runtime:
    device: str = "cuda:0"
    data_parallel: bool = False
    seed: int = 0


@dataclass
class Settings:
    runtime: Runtime = field(default_factory=Runtime)
    data: dict = field(default_factory=dict)
    model: dict = field(default_factory=dict)
    optimizer: dict = field(default_factory=dict)
    training: dict = field(default_factory=dict)

    @classmethod
    def read(cls, path):
        with open(path) as stream:
            raw = yaml.safe_load(stream)
        raw["runtime"] = Runtime(**raw.get("runtime", {}))
        return cls(**raw)
