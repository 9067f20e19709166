# id = "203"
# cause = "plain_tensor_attribute"
# also_causes = ["input_not_moved", "fresh_tensor_no_device"]
# culprit = "self.mask"
# also_culprit = ["src_mask", "model.mask", "model"]
# culprit_cell = 2
# origin_cell = 1
# also_cells = [3]
# origin = "src_mask = torch.zeros(T, T).masked_fill(~near, float(\"-inf\"))"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 3
# fix_site = "earlier cell"
# visible = "first user frame"
# expect_after_fix = "out.device == torch.device(DEV)"
# [[ref_fix]]
# op = "run"
# code = "model.mask = model.mask.to(DEV)"

# %%
import torch
from torch import nn

torch.manual_seed(0)
d_model, T = 8, 5
enc_layer = nn.TransformerEncoderLayer(d_model, nhead=2, dim_feedforward=16, dropout=0.0, batch_first=True)
transformer = nn.TransformerEncoder(enc_layer, num_layers=2, enable_nested_tensor=False)
transformer.to(DEV)
near = (torch.arange(T)[:, None] - torch.arange(T)).abs() <= 1
src_mask = torch.zeros(T, T).masked_fill(~near, float("-inf"))

# %%
class LM:
    def __init__(self, body, mask): self.body, self.mask = body, mask
    def __call__(self, x): return self.body(x, mask=self.mask)

model = LM(transformer, src_mask)

# %%
src = torch.randn(2, T, d_model).to(DEV)
out = model(src)
