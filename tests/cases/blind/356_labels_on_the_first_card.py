# id = "356"
# cause = "model_split_multi_gpu"
# also_causes = ["label_not_moved"]
# culprit = "labels"
# also_culprit = ["labels[:, 1:]", "labels[:, 1:].reshape(-1)", "shift_labels", "batch['labels']"]
# culprit_cell = 3
# origin_cell = 5
# also_cells = [4]
# origin = "batch = {k: v.to(DEV) for k, v in batch.items()}"
# culprit_device = "DEV"
# other_device = "DEV2"
# fail_cell = 5
# fix_site = "a method of a class"
# visible = "first user frame"
# expect_after_fix = "out['loss'].device == torch.device(DEV2) and lm.lm_head.weight.grad is not None"
# needs = "DEV2"
# # the loss belongs where the logits are: labels follow the head
# [[ref_fix]]
# op = "replace"
# cell = 3
# old = "labels[:, 1:].reshape(-1))"
# new = "labels[:, 1:].reshape(-1).to(logits.device))"
# [rerun]
# cells = [3, 4, 5]

# %%
import torch
from torch import nn
import torch.nn.functional as F

# %%
def dispatch(model, device_map):
    """poor man's accelerate: put the blocks on their cards, let hooks carry the activations"""
    def carry(device):
        def pre(mod, args):
            return tuple(a.to(device) if torch.is_tensor(a) else a for a in args)
        return pre
    for name, device in device_map.items():
        mod = model.get_submodule(name)
        mod.to(device)
        mod.register_forward_pre_hook(carry(device))
    model.hf_device_map = device_map
    return model

# %%
class TinyCausalLM(nn.Module):
    def __init__(self, vocab=30, d=8, n_layers=4):
        super().__init__()
        self.embed_tokens = nn.Embedding(vocab, d)
        self.layers = nn.ModuleList(nn.Sequential(nn.LayerNorm(d), nn.Linear(d, d), nn.SiLU())
                                    for _ in range(n_layers))
        self.lm_head = nn.Linear(d, vocab, bias=False)

    def forward(self, input_ids, labels=None):
        h = self.embed_tokens(input_ids)
        for layer in self.layers:
            h = layer(h)
        logits = self.lm_head(h)
        loss = None
        if labels is not None:
            loss = F.cross_entropy(logits[:, :-1].reshape(-1, logits.size(-1)), labels[:, 1:].reshape(-1))
        return {'loss': loss, 'logits': logits}

# %%
lm = TinyCausalLM()
device_map = {'embed_tokens': DEV, 'lm_head': DEV2}
device_map.update({f'layers.{i}': DEV if i < 2 else DEV2 for i in range(4)})
lm = dispatch(lm, device_map)

# generation works
with torch.no_grad():
    print(lm(torch.tensor([[1, 5, 7]]))['logits'].argmax(-1))

# %%
ids = torch.randint(0, 30, (2, 7))
batch = {'input_ids': ids, 'labels': ids.clone()}
batch = {k: v.to(DEV) for k, v in batch.items()}
lm.zero_grad()
out = lm(**batch)
out['loss'].backward()
