#!/usr/bin/env python
# coding: utf-8


# # Blob segmentation
#
# A fully convolutional network on synthetic micrographs. Runs on Colab with a GPU runtime.


# In[2]:


import torch
import torch.nn as nn
import torch.nn.functional as F

assert torch.cuda.is_available(), 'Runtime > Change runtime type > GPU'
device = 'cuda'
torch.manual_seed(0)


# In[3]:


def micrographs(n, seed):
    g = torch.Generator().manual_seed(seed)
    grid = torch.arange(16.0)
    images, masks = torch.zeros(n, 1, 16, 16), torch.zeros(n, 16, 16, dtype=torch.long)
    for i in range(n):
        for _ in range(3):
            cy, cx, r = (torch.rand(3, generator=g) * torch.tensor([15.0, 15.0, 2.0]) + torch.tensor([0, 0, 1.5])).tolist()
            inside = (grid[:, None] - cy) ** 2 + (grid[None, :] - cx) ** 2 < r * r
            masks[i][inside] = 1
        images[i, 0] = masks[i] + 0.5 * torch.randn(16, 16, generator=g)
    return images, masks


# In[4]:


class FCN(nn.Module):
    def __init__(self, c=8):
        super().__init__()
        self.a = nn.Conv2d(1, c, 3, padding=1)
        self.b = nn.Conv2d(c, c, 3, padding=1)
        self.head = nn.Conv2d(c, 2, 1)

    def forward(self, x):
        a = F.relu(self.a(x))
        b = F.relu(self.b(F.avg_pool2d(a, 2)))
        return self.head(a + F.interpolate(b, scale_factor=2, mode='nearest'))

model = FCN().to(device)
weights = torch.tensor([0.4, 1.0], device=device)
opt = torch.optim.Adam(model.parameters(), lr=5e-3)


# In[5]:


images, masks = micrographs(64, seed=1)
for epoch in range(2):
    for i in range(0, len(images), 16):
        x, y = images[i:i + 16].to(device), masks[i:i + 16].to(device)
        loss = F.cross_entropy(model(x), y, weight=weights)
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(f'epoch {epoch} loss {loss.item():.4f}')


# In[6]:


x, y = micrographs(16, seed=2)
with torch.no_grad():
    out = model(x.cuda())
    print(f'held out loss {F.cross_entropy(out, y.cuda(), weight=weights).item():.4f}')
    inter = ((out.argmax(1) == 1) & (y.cuda() == 1)).sum().item()
print('overlap', inter, 'of', int(y.sum()))
print(torch.cuda.memory_summary(abbreviated=True)[:80] if False else 'done')
