"""Four small networks, and data for them: what export.py exports and trains."""

import math

import numpy as np
import torch
from torch import nn


class Cnn(nn.Module):
    """A classifier of pictures: two convolutions with batch norm, a mean, a linear layer."""

    def __init__(self):
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(1, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4)
        self.conv2, self.norm2 = nn.Conv2d(4, 8, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(8)
        self.head = nn.Linear(8, 3)

    def forward(self, images):
        """Logits f32[n,3] of images f32[n,1,8,8]."""
        h = torch.relu(self.norm1(self.conv1(images)))
        h = torch.relu(self.norm2(self.conv2(h)))
        return self.head(h.mean((2, 3)))


class Block(nn.Module):
    """A layer of a transformer: causal attention of two heads, and a network of one hidden layer with GELU."""

    def __init__(self, width, heads=2):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        """A sequence f32[n,length,width] to another."""
        n, length, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(n, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-1, -2) / math.sqrt(width // self.heads)
        hidden = torch.ones(length, length, dtype=torch.bool).triu(1)
        attention = scores.masked_fill(hidden, -math.inf).softmax(-1) @ v
        x = x + self.proj(attention.transpose(1, 2).reshape(n, length, width))
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))


class Gpt(nn.Module):
    """A small transformer, whose embedding is the last layer's weight, too."""

    def __init__(self, tokens=12, length=8, width=16, layers=2):
        super().__init__()
        self.embedding, self.position = nn.Embedding(tokens, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, tokens, bias=False)
        self.head.weight = self.embedding.weight
        nn.init.normal_(self.embedding.weight, std=0.2)

    def forward(self, tokens):
        """Logits f32[n,8,12] of the token after each of tokens i64[n,8]."""
        x = self.embedding(tokens) + self.position(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class Potential(nn.Module):
    """The energy of a molecule, by one layer of messages between atoms."""

    def __init__(self, species=3, width=8, distances=10, cutoff=5.0):
        super().__init__()
        self.embedding = nn.Embedding(species, width)
        self.register_buffer("centers", torch.linspace(0.5, cutoff, distances))
        self.cutoff = cutoff
        self.filter = nn.Sequential(nn.Linear(distances, width), nn.SiLU(), nn.Linear(width, width))
        self.atom = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1))

    def forward(self, species, pairs, positions):
        """The energy f32[] of species i64[n] at positions f32[n,3], of which pairs i64[2,m] see each other."""
        i, j = pairs
        distance = (positions[i] - positions[j]).square().sum(-1).sqrt()
        fade = 0.5 * (1 + torch.cos(math.pi * distance.clamp(max=self.cutoff) / self.cutoff))
        gaussians = torch.exp(-4 * (distance[:, None] - self.centers) ** 2)
        weight = self.filter(gaussians) * fade[:, None]
        x = self.embedding(species)
        messages = torch.zeros_like(x).index_add(0, i, weight * x[j]).index_add(0, j, weight * x[i])
        return self.atom(x + messages).sum()


class Frames(nn.Module):
    """How likely a voice is in each frame of a sound: short Fourier transforms, strided convolutions and an LSTM."""

    def __init__(self, window: int, width: int = 4):
        super().__init__()
        self.padding, self.hop, self.bins = window // 4, window // 2, window // 2 + 1
        angle = 2 * math.pi * torch.arange(self.bins)[:, None] * torch.arange(window) / window
        self.register_buffer("basis", (torch.cat([angle.cos(), -angle.sin()]) * torch.hann_window(window))[:, None])
        first, *others = (nn.Conv1d(n, width, 3, stride=k, padding=1) for n, k in ((self.bins, 1), (width, 2), (width, 2)))
        self.encoder = nn.Sequential(first, nn.ReLU(), others[0], nn.ReLU(), others[1], nn.ReLU())
        self.rnn = nn.LSTM(width, width, batch_first=True)
        self.decoder = nn.Sequential(nn.ReLU(), nn.Conv1d(width, 1, 1), nn.Sigmoid())

    def forward(self, x: torch.Tensor, state: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The mean over frames f32[n,1] and the next state of samples f32[n,m] and a state f32[2,n,4]."""
        padded = nn.functional.pad(x[:, None], [self.padding, self.padding], mode="reflect")
        waves = nn.functional.conv1d(padded, self.basis, stride=self.hop)
        strength = torch.sqrt(waves[:, : self.bins] ** 2 + waves[:, self.bins :] ** 2 + 1e-6)
        every, (last, cell) = self.rnn(self.encoder(strength).transpose(1, 2), (state[0:1], state[1:2]))
        return self.decoder(every.transpose(1, 2)).squeeze(1).mean(1, keepdim=True), torch.cat([last, cell])


class Voice(nn.Module):
    """A detector of voices with a network for each of two sample rates."""

    def __init__(self):
        super().__init__()
        self.at16k, self.at8k = Frames(16), Frames(8)

    def forward(self, x: torch.Tensor, state: torch.Tensor, rate: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """What Frames gives for a rate i64[], 16000 or 8000: If in ONNX, from TorchScript and from torch.cond."""
        if not torch.jit.is_scripting():
            return torch.cond(rate == 16000, self.at16k, self.at8k, (x, state))
        if rate == 16000:
            chance, following = self.at16k(x, state)
        else:
            chance, following = self.at8k(x, state)
        return chance, following


def pictures(batches=4, size=16):
    """Stripes in three directions with noise: images f32[batches,size,1,8,8], labels i64[batches,size]."""
    rng = np.random.RandomState(0)
    labels = rng.randint(0, 3, (batches, size))
    row, column = np.mgrid[:8, :8]
    stripes = np.stack([np.sin(row * 1.5), np.sin(column * 1.5), np.sin(row + column)])
    images = stripes[labels] + 0.5 * rng.standard_normal((batches, size, 8, 8))
    return images[:, :, None].astype("f4"), labels


def counting(batches=4, size=8, length=8):
    """Sequences that count by 1, 2 or 3 modulo 12: tokens and the tokens after each, i64[batches,size,length]."""
    rng = np.random.RandomState(1)
    start, step = rng.randint(0, 12, (batches, size, 1)), rng.randint(1, 4, (batches, size, 1))
    numbers = (start + step * np.arange(length + 1)) % 12
    return numbers[..., :-1], numbers[..., 1:]


def molecule(atoms=6):
    """Species i64[atoms], all pairs of atoms i64[2,m], and positions f32[atoms,3]."""
    rng = np.random.RandomState(2)
    grid = np.stack(np.meshgrid(range(2), range(2), range(2)), -1).reshape(-1, 3)[:atoms] * 1.5
    positions = grid + 0.2 * rng.standard_normal((atoms, 3))
    return rng.randint(0, 3, atoms), np.stack(np.triu_indices(atoms, 1)), positions.astype("f4")


def sound(batch=3, samples=40):
    """Noise f32[batch,samples] and a state f32[2,batch,4]."""
    rng = np.random.RandomState(5)
    return rng.standard_normal((batch, samples)).astype("f4"), 0.5 * rng.standard_normal((2, batch, 4)).astype("f4")
