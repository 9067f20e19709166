# id = "149"
# cause = "ema_shadow"
# also_causes = ["plain_tensor_attribute", "stale_cache", "optimizer_state"]
# culprit = "self.shadow[n]"
# also_culprit = ["ema.shadow['0.weight']", "ema.shadow", "self.shadow", "ema"]
# culprit_cell = 1
# origin_cell = 2
# also_cells = [3]
# origin = "ema = EMA(unet)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 4
# fix_site = "earlier cell"
# visible = "only in an object attribute"
# expect_after_fix = "all(v.device == torch.device(DEV) for v in shadow.values()) and len(shadow) == 4"
# # the failed cell has already stepped the optimizer once: built anew, or the edit of cell 2 re-run with its model
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "ema = EMA(unet)\nunet.to(DEV)"
# new = "unet.to(DEV)\nema = EMA(unet)"
# [rerun]
# cells = [2, 4]

# %%
import torch
from torch import nn

class EMA:
    def __init__(self, model, decay=0.99):
        self.decay = decay
        self.shadow = {n: p.detach().clone() for n, p in model.named_parameters() if p.requires_grad}

    @torch.no_grad()
    def update(self, model):
        for n, p in model.named_parameters():
            if n in self.shadow:
                self.shadow[n] = self.decay * self.shadow[n] + (1.0 - self.decay) * p

# %%
unet = nn.Sequential(nn.Linear(3, 5), nn.SiLU(), nn.Linear(5, 3))
ema = EMA(unet)
unet.to(DEV)
opt = torch.optim.AdamW(unet.parameters(), lr=1e-3)

# %%
def train(n):
    for _ in range(n):
        x = torch.randn(4, 3, device=DEV)
        loss = (unet(x) - x).pow(2).mean()
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        ema.update(unet)

# %%
train(1)
shadow = ema.shadow
