# id = "214"
# cause = "dp_replica_state"
# also_causes = ["module_in_plain_container", "plain_tensor_attribute"]
# culprit = "self.scales"
# also_culprit = ["scale", "self.scales[i]", "unet.scales", "unet.scales[0]"]
# culprit_cell = 1
# origin_cell = 1
# also_cells = []
# origin = "self.scales.append(s)"
# culprit_device = "DEV"
# other_device = "DEV2"
# fail_cell = 4
# fix_site = "class __init__"
# visible = "in no frame (worker thread, replica 1)"
# expect_after_fix = "restored.device == torch.device(DEV) and restored.shape == noisy.shape"
# needs = "DEV2"
# # the list of aliases is shared by the replicas and keeps the parameters of the first card
# [[ref_fix]]
# op = "replace"
# cell = 1
# old = "zip(self.layers, self.scales)"
# new = "zip(self.layers, [getattr(self, f'scale{i}') for i in range(len(self.layers))])"
# [rerun]
# cells = [1, 2, 3, 4]

# %%
import torch
from torch import nn

class TinyDenoiser(nn.Module):
    def __init__(self, c=3, depth=2):
        super().__init__()
        self.layers = nn.ModuleList(nn.Conv1d(c, c, 3, padding=1) for _ in range(depth))
        self.scales = []
        for i in range(depth):
            s = nn.Parameter(torch.full((c, 1), 0.1 * (i + 1)))
            self.register_parameter(f'scale{i}', s)
            self.scales.append(s)

    def forward(self, x):
        for conv, scale in zip(self.layers, self.scales):
            x = x + scale * torch.tanh(conv(x))
        return x

# %%
from torch.nn.parallel import replicate, scatter, parallel_apply, gather

@torch.inference_mode(False)
def run_everywhere(module, batch, cards):
    """poor man's DataParallel, see the forum"""
    if len(cards) < 2:
        return module(batch)
    parts = scatter(batch, cards)
    copies = replicate(module, cards[:len(parts)], detach=True)
    return gather(parallel_apply(copies, parts, devices=cards[:len(parts)]), cards[0])

def available():
    return [torch.device(d).index for d in (DEV, DEV2)] if DEV != HOST else []

# %%
unet = TinyDenoiser()
for p in unet.parameters():
    p.data = p.data.to(DEV)         # in place: the optimizer of the other notebook keeps its references
unet.requires_grad_(False)
noisy = torch.randn(4, 3, 16, device=DEV)

# %%
restored = run_everywhere(unet, noisy, available())
print((restored - noisy).abs().mean())
