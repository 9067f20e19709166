# id = "325"
# cause = "closure_constant"
# also_causes = ["input_not_moved"]
# culprit = "vec"
# also_culprit = ["strength * vec", "direction"]
# culprit_cell = 3
# origin_cell = 4
# also_cells = [5]
# origin = "direction = F.normalize(mean_activation(happy) - mean_activation(sad), dim=0)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "a function in an earlier cell"
# visible = "raising frame"
# expect_after_fix = "steered.device == torch.device(DEV) and len(lm[1]._forward_hooks) == 0"
# [[ref_fix]]
# op = "replace"
# cell = 3
# old = "return output + strength * vec"
# new = "return output + strength * vec.to(output.device)"
# [rerun]
# cells = [3, 5]

# %%
import torch
import torch.nn.functional as F
from torch import nn
from contextlib import contextmanager

# %%
lm = nn.Sequential(nn.EmbeddingBag(50, 12), nn.Linear(12, 12), nn.ReLU(), nn.Linear(12, 50)).to(DEV)
lm.eval()
encode = lambda words: torch.tensor([[sum(map(ord, w)) % 50 for w in t.split()] for t in words], device=DEV)

@torch.no_grad()
def mean_activation(texts, layer=1):
    store = []
    handle = lm[layer].register_forward_hook(lambda m, i, o: store.append(o.detach().cpu()))    # or the card fills up
    try:
        for t in texts:
            lm(encode([t]))
    finally:
        handle.remove()
    return torch.cat(store).mean(0)

# %%
@contextmanager
def steer(layer, vec, strength=3.0):
    def add(module, args, output):
        return output + strength * vec
    handle = layer.register_forward_hook(add)
    try:
        yield
    finally:
        handle.remove()

# %%
happy = ["what a wonderful day", "best of luck friend"]
sad = ["nobody ever calls me", "rain and rain again"]
direction = F.normalize(mean_activation(happy) - mean_activation(sad), dim=0)

# %%
probe = encode(["i think that today"])
with torch.no_grad():
    plain = lm(probe)
    with steer(lm[1], direction):
        steered = lm(probe)
print((steered - plain).abs().max())
