# id = "286"
# cause = "meta_not_materialized"
# also_causes = []
# culprit = "module"
# also_culprit = ["module.norm", "module.norm.weight", "tagger", "tagger.norm", "tagger.norm.weight"]
# culprit_cell = 4
# origin_cell = 3
# also_cells = [5]
# origin = "skeleton.load_state_dict(weights, strict=False, assign=True)"
# culprit_device = "meta"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "model load call"
# visible = "only in an object attribute (a parameter whose name in the checkpoint was another)"
# expect_after_fix = "scores.device == torch.device(DEV) and tagger.norm.weight.device == torch.device(DEV) and bool((tagger.norm.weight == 0.5).all())"
# numbers = false   # on the host the notebook stops as well (meta); the expectation asks for the stored values
# [[ref_fix]]
# op = "replace"
# cell = 3
# old = "    skeleton.load_state_dict(weights,"
# new = "    weights = {k.replace('gamma', 'weight').replace('beta', 'bias'): v for k, v in weights.items()}\n    skeleton.load_state_dict(weights,"
# [rerun]
# cells = [3, 4, 5]

# %%
import io
import torch
from torch import nn

class Tagger(nn.Module):
    def __init__(self, d=5, tags=3):
        super().__init__()
        self.inp, self.norm, self.out = nn.Linear(d, d), nn.LayerNorm(d), nn.Linear(d, tags)
    def forward(self, x):
        return self.out(self.norm(self.inp(x)))

# %%
# the old TensorFlow export: LayerNorm has gamma and beta there
def exported():
    sd = Tagger().state_dict()
    sd["norm.gamma"] = torch.full_like(sd.pop("norm.weight"), 0.5)
    sd["norm.beta"] = sd.pop("norm.bias") + 0.1
    buf = io.BytesIO(); torch.save(sd, buf); buf.seek(0)
    return buf

# %%
def from_pretrained(cls, file, **kw):
    with torch.device("meta"):
        skeleton = cls(**kw)
    weights = torch.load(file, map_location="cpu")
    skeleton.load_state_dict(weights, strict=False, assign=True)
    return skeleton.eval()

# %%
def place(module, device):
    n = sum(p.numel() for p in module.parameters())
    print(f"placing {n} parameters on {device}")
    return module.to(device)

# %%
tagger = from_pretrained(Tagger, exported())
tagger = place(tagger, DEV)
with torch.no_grad():
    scores = tagger(torch.ones(2, 5, device=DEV))
