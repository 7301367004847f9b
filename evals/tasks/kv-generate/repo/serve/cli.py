import argparse

import torch

from serve.model import Writer, generate
from serve.text import decode, encode


def load(seed: int) -> Writer:
    torch.manual_seed(seed)
    return Writer().cuda().half().eval()


def main() -> None:
    ap = argparse.ArgumentParser()
    ap.add_argument("--prompt", default="the tide")
    ap.add_argument("--tokens", type=int, default=20)
    ap.add_argument("--temperature", type=float, default=0.0)
    ap.add_argument("--seed", type=int, default=3)
    args = ap.parse_args()

    model = load(args.seed)
    warm = torch.cuda.Stream()
    warm.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(warm):
        generate(model, encode(args.prompt), 1)
    torch.cuda.current_stream().wait_stream(warm)

    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    ids, mean = generate(model, encode(args.prompt), args.tokens, args.temperature, args.seed)
    end.record()
    torch.cuda.synchronize()
    print(f"{args.prompt}|{decode(ids)}")
    print(f"mean loss {-mean:.4f}  last loss {-generate(model, encode(args.prompt), 1)[1]:.4f}")
    print(f"{begin.elapsed_time(end) / args.tokens:.2f} ms a token")


if __name__ == "__main__":
    main()
