# id = "230"
# cause = "module_built_in_forward"
# also_causes = ["module_added_after_move", "fresh_tensor_no_device"]
# culprit = "self.proj"
# also_culprit = ["self.blocks[0].proj", "nn.Linear(x.shape[-1], self.d, bias=False)", "proj", "enc.merge.proj", "model.text.proj", "model.text"]
# culprit_cell = 2
# origin_cell = 2
# also_cells = [3]
# origin = "self.proj = nn.Linear(x.shape[-1], self.d, bias=False)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 4
# fix_site = "forward"
# visible = "only in an object attribute"
# expect_after_fix = "model.text.proj.weight.device == torch.device(DEV) and joint.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "self.proj = nn.Linear(x.shape[-1], self.d, bias=False)"
# new = "self.proj = nn.Linear(x.shape[-1], self.d, bias=False).to(x.device)"
# [rerun]
# cells = [2, 3, 4]

# %%
import torch
import torch.nn as nn

# %%
class Tower(nn.Module):
    """widths of the precomputed features differ from data set to data set, so the first batch decides"""

    def __init__(self, d):
        super().__init__()
        self.d = d
        self.proj = None
        self.norm = nn.LayerNorm(d)

    def ensure_built(self, x):
        if self.proj is None:
            self.proj = nn.Linear(x.shape[-1], self.d, bias=False)
            nn.init.orthogonal_(self.proj.weight)

    def forward(self, x):
        self.ensure_built(x)
        return self.norm(self.proj(x))


class Late(nn.Module):
    def __init__(self, d=4):
        super().__init__()
        self.text, self.vision = Tower(d), Tower(d)

    def forward(self, text, vision):
        return torch.cat([self.text(text), self.vision(vision)], dim=-1)

# %%
model = Late().to(DEV)
print(sum(p.numel() for p in model.parameters()), 'parameters on', DEV)
batch = {'text': torch.linspace(0, 1, 21).view(3, 7), 'vision': torch.linspace(-1, 0, 15).view(3, 5)}
batch = {k: v.to(DEV) for k, v in batch.items()}

# %%
joint = model(**batch)
