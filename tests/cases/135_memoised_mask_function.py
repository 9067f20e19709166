# id = "135"
# cause = "fresh_tensor_no_device"
# also_causes = ["stale_cache"]
# culprit = "band_mask(x.size(1), self.width)"
# also_culprit = ["~band_mask(x.size(1), self.width)", "i", "torch.arange(n)", "(i[:, None] - i[None, :]).abs() <= width"]
# culprit_cell = 2
# origin_cell = 1
# also_cells = []
# origin = "i = torch.arange(n)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 3
# fix_site = "a function in an earlier cell"
# visible = "not in any frame"
# expect_after_fix = "res.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "~band_mask(x.size(1), self.width)"
# new = "~band_mask(x.size(1), self.width).to(x.device)"
# [rerun]
# cells = [2, 3]

# %%
import functools
import torch

@functools.lru_cache(maxsize=None)
def band_mask(n, width):
    i = torch.arange(n)
    return (i[:, None] - i[None, :]).abs() <= width

# %%
class LocalAttention(torch.nn.Module):
    def __init__(self, dim, width):
        super().__init__()
        self.width = width
        self.proj = torch.nn.Linear(dim, dim)
    def forward(self, x):
        q = self.proj(x)
        scores = torch.einsum("bid,bjd->bij", q, x)
        scores = scores.masked_fill(~band_mask(x.size(1), self.width), -1e9)
        return scores.softmax(-1) @ x

la = LocalAttention(4, 1).to(DEV)

# %%
res = la(torch.randn(2, 6, 4).to(DEV))
