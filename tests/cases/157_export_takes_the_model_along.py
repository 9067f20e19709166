# id = "157"
# cause = "framework_moved_model"
# also_causes = ["model_not_moved", "hardcoded_device"]
# culprit = "gate"
# also_culprit = ["gate.a", "self.a"]
# culprit_cell = 4
# origin_cell = 1
# also_cells = [2, 3]
# origin = "host = model.cpu()"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 4
# fix_site = "a function in an earlier cell"
# visible = "only in an object attribute"
# expect_after_fix = "after.device == torch.device(DEV)"
# [[ref_fix]]
# op = "run"
# code = "gate.to(DEV)"

# %%
import io
import torch
from torch import nn

def export(model, sample):
    """writes a host copy of the weights, for the phone"""
    model.eval()
    host = model.cpu()
    buffer = io.BytesIO()
    torch.save({"weights": host.state_dict(), "shape": tuple(sample.shape)}, buffer)
    return buffer.getvalue()

# %%
class Gate(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.a, self.b = nn.Linear(d, d), nn.Linear(d, d)
    def forward(self, x):
        return self.a(x) * torch.sigmoid(self.b(x))

gate = Gate(5).to(DEV)
x = torch.randn(2, 5, device=DEV)
before = gate(x)

# %%
blob = export(gate, x)
print(f"{len(blob) / 1024:.1f} KiB")

# %%
after = gate(x)
