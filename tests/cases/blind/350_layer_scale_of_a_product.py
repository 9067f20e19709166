# id = "350"
# cause = "plain_tensor_attribute"
# also_causes = ["derived_tensor_in_init"]
# culprit = "self.gamma_1"
# also_culprit = ["vit[0].gamma_1", "self.gamma_2", "vit[0].gamma_2"]
# culprit_cell = 2
# origin_cell = 2
# also_cells = []
# origin = "self.gamma_1 = init_values * nn.Parameter(torch.ones(dim))"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 4
# fix_site = "class __init__"
# visible = "only in an object attribute"
# expect_after_fix = "tokens.device == torch.device(DEV)"
# # dir(vit[0]) has gamma_1, vit[0].named_parameters() has not: the product is no Parameter
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "self.gamma_1 = init_values * nn.Parameter(torch.ones(dim))"
# new = "self.gamma_1 = nn.Parameter(init_values * torch.ones(dim))"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "self.gamma_2 = init_values * nn.Parameter(torch.ones(dim))"
# new = "self.gamma_2 = nn.Parameter(init_values * torch.ones(dim))"
# [rerun]
# cells = [2, 3, 4]

# %%
import torch
from torch import nn

# %%
class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.h, self.qkv, self.proj = heads, nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
    def forward(self, x):
        B, N, D = x.shape
        q, k, v = self.qkv(x).view(B, N, 3, self.h, D // self.h).permute(2, 0, 3, 1, 4)
        a = (q @ k.transpose(-2, -1)) * (D // self.h) ** -0.5
        return self.proj((a.softmax(-1) @ v).transpose(1, 2).reshape(B, N, D))

class Block(nn.Module):
    def __init__(self, dim, heads=2, init_values=1e-5):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = Attention(dim, heads)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))
        # LayerScale (CaiT)
        self.gamma_1 = init_values * nn.Parameter(torch.ones(dim))
        self.gamma_2 = init_values * nn.Parameter(torch.ones(dim))

    def forward(self, x):
        x = x + self.gamma_1 * self.attn(self.norm1(x))
        x = x + self.gamma_2 * self.mlp(self.norm2(x))
        return x

# %%
vit = nn.Sequential(*[Block(8) for _ in range(3)], nn.LayerNorm(8))
vit = vit.to(DEV).eval()
print(sum(p.numel() for p in vit.parameters()), 'parameters')

# %%
with torch.inference_mode():
    tokens = vit(torch.randn(2, 5, 8, device=DEV))
