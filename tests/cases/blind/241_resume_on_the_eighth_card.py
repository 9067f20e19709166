# id = "241"
# cause = "no_accelerator"
# also_causes = ["checkpoint_location", "hardcoded_device"]
# culprit = ""
# also_culprit = []
# culprit_cell = 3
# origin_cell = 1
# also_cells = [1, 2, 4]
# origin = "PLACEMENT = {'actor': DEV, 'critic': 'cuda:7'}"
# culprit_device = "none"
# other_device = "none"
# fail_cell = 4
# fix_site = "checkpoint load"
# visible = "library frame"
# expect_after_fix = "value.device == next(nets['critic'].parameters()).device and sorted(nets) == ['actor', 'critic'] and nets['actor'].weight.device == torch.device(DEV)"
# numbers = false
# # a right fix may name the card as a literal, which an all-CPU run does not have
# [[ref_fix]]
# op = "replace"
# cell = 1
# old = "'critic': 'cuda:7'"
# new = "'critic': DEV"
# [rerun]
# cells = [1, 2, 3, 4]

# %% placement on the DGX
PLACEMENT = {'actor': DEV, 'critic': 'cuda:7'}

# %%
import io
import torch
from torch import nn

def saved(module):
    """instead of the bucket"""
    buf = io.BytesIO()
    torch.save({'state': module.state_dict(), 'shape': (module.in_features, module.out_features)}, buf)
    return buf.getvalue()

bucket = {'actor': saved(nn.Linear(4, 2)), 'critic': saved(nn.Linear(4, 1))}

# %%
class Store:
    def __init__(self, tag, placement):
        self.tag, self.where = tag, placement[tag]

    def fetch(self):
        return torch.load(io.BytesIO(bucket[self.tag]), map_location=self.where)

    def restore(self):
        payload = self.fetch()
        net = nn.Linear(*payload['shape'])
        net.load_state_dict(payload['state'])
        return net.to(self.where)

# %%
nets = {tag: Store(tag, PLACEMENT).restore() for tag in bucket}
obs = torch.ones(3, 4)
value = nets['critic'](obs.to(PLACEMENT['critic']))
