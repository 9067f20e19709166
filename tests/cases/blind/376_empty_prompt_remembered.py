# id = "376"
# cause = "stale_cache"
# also_causes = ["derived_tensor_in_init", "plain_tensor_attribute"]
# culprit = "self.null_context"
# also_culprit = ["pipe.null_context", "self", "pipe"]
# culprit_cell = 2
# origin_cell = 4
# also_cells = [3, 5]
# origin = "print('context', tuple(pipe.null_context.shape))"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "class of the notebook (a property that remembers)"
# visible = "only in an object attribute"
# expect_after_fix = "latents.device == torch.device(DEV) and latents.shape == (2, 8)"
# [[ref_fix]]
# op = "run"
# code = "del pipe.null_context"

# %%
import torch
from torch import nn
from functools import cached_property

class TextEncoder(nn.Module):
    def __init__(self, vocab=32, dim=6):
        super().__init__()
        self.table = nn.Embedding(vocab, dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, ids):
        return self.proj(self.table(ids))

class Denoiser(nn.Module):
    def __init__(self, dim=6, width=8):
        super().__init__()
        self.attend = nn.Linear(width, dim)
        self.value = nn.Linear(dim, width)

    def forward(self, z, context):
        w = (self.attend(z).unsqueeze(1) * context).sum(-1).softmax(-1)
        return self.value((w.unsqueeze(-1) * context).sum(1))

# %%
class Pipeline:
    def __init__(self, encoder, denoiser, guidance=3.0):
        self.encoder, self.denoiser, self.guidance = encoder, denoiser, guidance

    @property
    def device(self):
        return next(self.denoiser.parameters()).device

    def to(self, device):
        self.encoder.to(device)
        self.denoiser.to(device)
        return self

    @torch.no_grad()
    def encode(self, prompts):
        ids = torch.tensor([[ord(c) % 32 for c in p.ljust(4)[:4]] for p in prompts], device=self.device)
        return self.encoder(ids)

    @cached_property
    def null_context(self):
        """what the encoder says to an empty prompt; the same for every picture"""
        return self.encode([""])

    @torch.no_grad()
    def sample(self, prompts, steps=2):
        ctx = self.encode(prompts)
        both = torch.cat([self.null_context.expand_as(ctx), ctx])
        z = torch.randn(len(prompts), 8).to(self.device)
        for _ in range(steps):
            free, cond = self.denoiser(z.repeat(2, 1), both).chunk(2)
            z = z - 0.1 * (free + self.guidance * (cond - free))
        return z

# %%
pipe = Pipeline(TextEncoder(), Denoiser())

# %%
# what did I load?
for name in ('encoder', 'denoiser'):
    print(name, sum(p.numel() for p in getattr(pipe, name).parameters()))
print('context', tuple(pipe.null_context.shape))

# %%
pipe.to(DEV)
latents = pipe.sample(["a cat", "a dog on a bike"])
