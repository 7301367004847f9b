"""Writes text with a trained model: python sample.py --start "The harbour" --length 300"""

import argparse

import torch

from chargpt.data import Alphabet
from chargpt.model import CharGPT


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkpoint", default="runs/chargpt.pt")
    parser.add_argument("--start", default="The ")
    parser.add_argument("--length", type=int, default=300)
    parser.add_argument("--temperature", type=float, default=0.8)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    torch.cuda.manual_seed(args.seed)
    state = torch.load(args.checkpoint)
    options = state["options"]
    alphabet = Alphabet("".join(state["symbols"]))
    model = CharGPT(
        len(alphabet), options["width"], options["num_layers"], options["num_heads"], options["context"], 0.0
    )
    model.load_state_dict(state["model"])
    model.cuda().eval()

    start = alphabet.encode(args.start).unsqueeze(0).cuda()
    with torch.cuda.amp.autocast():
        written = model.write(start, args.length, args.temperature)
    print(alphabet.decode(written[0].cpu()))


if __name__ == "__main__":
    main()
