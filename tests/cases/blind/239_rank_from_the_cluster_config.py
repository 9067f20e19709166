# id = "239"
# cause = "no_accelerator"
# also_causes = ["hardcoded_device", "ddp_wrong_device"]
# culprit = ""
# also_culprit = []
# culprit_cell = 3
# origin_cell = 1
# also_cells = [1, 2, 4]
# origin = "\"local_rank\": 3"
# culprit_device = "none"
# other_device = "none"
# fail_cell = 4
# fix_site = "earlier cell"
# visible = "only in an object attribute"
# expect_after_fix = "fitted.weight.device.type == torch.device(DEV).type and result.device == fitted.weight.device"
# numbers = false
# # a right fix may name the card as a literal, which an all-CPU run does not have
# [[ref_fix]]
# op = "replace"
# cell = 1
# old = "\"local_rank\": 3"
# new = "\"local_rank\": 0"
# [rerun]
# cells = [1, 2, 3, 4]

# %%
import json
RUN = json.loads('''{
    "name": "ridge-a100x4", "local_rank": 3, "world_size": 4,
    "optim": {"lr": 0.1, "steps": 2}
}''')

# %%
import torch
from torch import nn

class Context:
    """what torchrun would have told us"""
    def __init__(self, run):
        self.local_rank = run['local_rank']
        self.device = torch.device('cuda', self.local_rank)
    @property
    def is_main(self):
        return self.local_rank == 0

# %%
def prepare(module, ctx):
    module = module.to(ctx.device)
    return module, torch.optim.SGD(module.parameters(), **{'lr': RUN['optim']['lr']})

def train(run):
    ctx = Context(run)
    net, opt = prepare(nn.Linear(3, 1), ctx)
    data = torch.ones(4, 3, device=ctx.device)
    for _ in range(run['optim']['steps']):
        loss = net(data).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    return net, loss.detach()

# %%
fitted, result = train(RUN)
