# id = "127"
# cause = "module_in_plain_container"
# also_causes = []
# culprit = "op"
# also_culprit = ["self.stages", "ops", "self.stages['stage0']", "enc.stages", "enc.stages['stage0'][0]", "enc.stages['stage0']"]
# culprit_cell = 2
# origin_cell = 2
# also_cells = [1, 3]
# origin = "self.stages[f\"stage{i}\"] = conv_bn(cin, c)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 3
# fix_site = "class __init__"
# visible = "only in an object attribute"
# expect_after_fix = "code.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "self.stages = OrderedDict()"
# new = "self.stages = nn.ModuleDict()"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "conv_bn(cin, c)"
# new = "nn.ModuleList(conv_bn(cin, c))"
# [rerun]
# cells = [2, 3]

# %%
from collections import OrderedDict
import torch
import torch.nn as nn

def conv_bn(cin, cout):
    return [nn.Conv1d(cin, cout, 3, padding=1, bias=False), nn.BatchNorm1d(cout), nn.ReLU()]

# %%
class Encoder(nn.Module):
    out_channels = (4, 6)

    def __init__(self, cin=2):
        super().__init__()
        self.stages = OrderedDict()
        for i, c in enumerate(self.out_channels):
            self.stages[f"stage{i}"] = conv_bn(cin, c)
            cin = c
        self.head = nn.Linear(cin, 3)

    def forward(self, x):
        for name, ops in self.stages.items():
            for op in ops:
                x = op(x)
        return self.head(x.mean(-1))

# %%
enc = Encoder().to(DEV)
enc.eval()
with torch.no_grad():
    code = enc(torch.rand(3, 2, 10, device=DEV))
