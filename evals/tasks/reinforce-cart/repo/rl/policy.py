import torch
import torch.nn as nn


def default_device():
    if not torch.cuda.is_available():
        raise RuntimeError("this code wants a GPU")
    return torch.device("cuda")


class ActorCritic(nn.Module):
    def __init__(self, env, hidden=16, device=None):
        super().__init__()
        self.device = device or default_device()
        self.body = nn.Sequential(nn.Linear(env.observation_size, hidden), nn.Tanh())
        self.actor = nn.Linear(hidden, env.num_actions)
        self.critic = nn.Linear(hidden, 1)
        self.to(self.device)

    def forward(self, obs):
        h = self.body(obs)
        return self.actor(h), self.critic(h).squeeze(-1)

    @torch.no_grad()
    def act(self, obs, rng):
        obs = torch.as_tensor(obs, device=self.device).unsqueeze(0)
        logits, _ = self(obs)
        p_right = torch.softmax(logits, dim=-1)[0, 1].item()
        return int(rng.uniform() < p_right)
