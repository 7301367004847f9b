import argparse

import numpy as np
import torch
import torch.nn.functional as F

from rl.cart import Cart
from rl.policy import ActorCritic


def rollout(env, model, rng):
    """One episode."""
    obs, done = env.reset(), False
    seen, actions, rewards = [], [], []
    while not done:
        a = model.act(obs, rng)
        seen.append(obs)
        actions.append(a)
        obs, r, done = env.step(a)
        rewards.append(r)
    return np.stack(seen), np.array(actions), rewards


def discounted(rewards, gamma):
    out, total = [], 0.0
    for r in reversed(rewards):
        total = r + gamma * total
        out.append(total)
    return torch.cuda.FloatTensor(out[::-1])


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--updates", type=int, default=300)
    ap.add_argument("--episodes", type=int, default=2, help="episodes an update")
    ap.add_argument("--gamma", type=float, default=0.95)
    ap.add_argument("--seed", type=int, default=0)
    args = ap.parse_args()

    torch.manual_seed(args.seed)
    rng = np.random.RandomState(args.seed + 1)
    env = Cart(seed=args.seed)
    model = ActorCritic(env)
    optim = torch.optim.RMSprop(model.parameters(), lr=3e-3)
    for update in range(args.updates):
        policy_loss, value_loss, score = 0.0, 0.0, 0.0
        for _ in range(args.episodes):
            seen, actions, rewards = rollout(env, model, rng)
            returns = discounted(rewards, args.gamma)
            obs = torch.from_numpy(seen).to(model.device)
            acts = torch.from_numpy(actions).to(model.device)
            logits, values = model(obs)
            logp = F.log_softmax(logits, dim=-1).gather(1, acts[:, None]).squeeze(1)
            policy_loss = policy_loss - (logp * (returns - values.detach())).mean()
            value_loss = value_loss + F.mse_loss(values, returns)
            score += sum(rewards)
        loss = (policy_loss + 0.5 * value_loss) / args.episodes
        optim.zero_grad()
        loss.backward()
        optim.step()
        print("update %3d  score %6.3f  loss %.4f" % (update, score / args.episodes, loss.item()))


if __name__ == "__main__":
    main()
