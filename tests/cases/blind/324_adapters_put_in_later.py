# id = "324"
# cause = "module_added_after_move"
# also_causes = []
# culprit = "self.lora_A"
# also_culprit = ["self.lora_B", "self", "model.layers[0].q_proj", "model.layers[0].q_proj.lora_A", "self.q_proj", "self.q_proj.lora_A"]
# culprit_cell = 3
# origin_cell = 4
# also_cells = [2]
# origin = "model = get_peft_model(model, dict(r=2, alpha=4, target_modules=('q_proj', 'v_proj')))"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "earlier cell"
# visible = "only in an object attribute"
# expect_after_fix = "loss.device == torch.device(DEV) and {p.device for p in model.parameters()} == {torch.device(DEV)}"
# [[ref_fix]]
# op = "run"
# code = "model.to(DEV)"

# %%
import torch
import torch.nn as nn
import torch.nn.functional as F

# %%
class Layer(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.q_proj, self.k_proj = nn.Linear(d, d), nn.Linear(d, d)
        self.v_proj, self.o_proj = nn.Linear(d, d), nn.Linear(d, d)
    def forward(self, x):
        a = F.scaled_dot_product_attention(self.q_proj(x), self.k_proj(x), self.v_proj(x))
        return x + self.o_proj(a)

class Classifier(nn.Module):
    def __init__(self, vocab=30, d=8, n_layers=2, n_classes=2):
        super().__init__()
        self.embed = nn.Embedding(vocab, d)
        self.layers = nn.ModuleList([Layer(d) for _ in range(n_layers)])
        self.score = nn.Linear(d, n_classes)
    def forward(self, ids):
        h = self.embed(ids)
        for layer in self.layers:
            h = layer(h)
        return self.score(h.mean(1))

# %%
class LoraLinear(nn.Module):
    def __init__(self, base, r, alpha):
        super().__init__()
        self.base, self.scaling = base, alpha / r
        self.lora_A = nn.Parameter(torch.randn(r, base.in_features) * 0.02)
        self.lora_B = nn.Parameter(torch.zeros(base.out_features, r))
    def forward(self, x):
        return self.base(x) + self.scaling * ((x @ self.lora_A.T) @ self.lora_B.T)

def get_peft_model(model, cfg):
    for p in model.parameters():
        p.requires_grad_(False)
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if name in cfg['target_modules']:
                setattr(parent, name, LoraLinear(child, cfg['r'], cfg['alpha']))
    n = sum(p.numel() for p in model.parameters() if p.requires_grad)
    print(f"trainable params: {n}")
    return model

# %%
model = Classifier().to(DEV)
with torch.no_grad():
    base_logits = model(torch.randint(0, 30, (2, 7), device=DEV))
model = get_peft_model(model, dict(r=2, alpha=4, target_modules=('q_proj', 'v_proj')))

# %%
ids, y = torch.randint(0, 30, (4, 7), device=DEV), torch.tensor([0, 1, 1, 0], device=DEV)
loss = F.cross_entropy(model(ids), y)
loss.backward()
