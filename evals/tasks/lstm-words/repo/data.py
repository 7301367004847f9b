import random

import torch

NOUNS = 'boat gull tide rope pier net lamp storm'.split()
VERBS = 'lifts drags meets finds leaves'.split()
ADJECTIVES = 'old wet slow bright'.split()


class Dictionary(object):
    def __init__(self):
        self.word2idx = {}
        self.idx2word = []

    def add_word(self, word):
        if word not in self.word2idx:
            self.idx2word.append(word)
            self.word2idx[word] = len(self.idx2word) - 1
        return self.word2idx[word]

    def __len__(self):
        return len(self.idx2word)


class Corpus(object):
    def __init__(self, words=900, seed=4):
        self.dictionary = Dictionary()
        for word in NOUNS + VERBS + ADJECTIVES + ['the', 'a', '<eos>']:
            self.dictionary.add_word(word)
        rng = random.Random(seed)
        self.train = self.tokenize(rng, words)
        self.valid = self.tokenize(rng, words // 4)

    def tokenize(self, rng, n):
        ids = []
        while len(ids) < n:
            line = []
            for part in ('subject', 'object'):
                line.append(rng.choice(['the', 'a']))
                if rng.random() < 0.4:
                    line.append(rng.choice(ADJECTIVES))
                line.append(rng.choice(NOUNS))
                if part == 'subject':
                    line.append(rng.choice(VERBS))
            ids += [self.dictionary.word2idx[w] for w in line + ['<eos>']]
        return torch.LongTensor(ids[:n])
