"""A cart on a track with wind; the reward is the nearness to the middle."""
import numpy as np


class Cart:
    observation_size, num_actions = 3, 2

    def __init__(self, horizon=16, seed=0):
        self.horizon = horizon
        self.rng = np.random.RandomState(seed)

    def reset(self):
        self.t = 0
        self.x, self.v = self.rng.uniform(-1, 1), 0.0
        self.wind = self.rng.uniform(-0.05, 0.05)
        return self._see()

    def step(self, action):
        self.v = 0.9 * self.v + (0.2 if action == 1 else -0.2) + self.wind
        self.x += 0.3 * self.v
        self.t += 1
        return self._see(), 1.0 - abs(self.x), self.t >= self.horizon

    def _see(self):
        return np.array([self.x, self.v, self.t / self.horizon], dtype=np.float32)
