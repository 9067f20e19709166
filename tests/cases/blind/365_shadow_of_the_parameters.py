# id = "365"
# cause = "ema_shadow"
# also_causes = ["stale_cache", "optimizer_state", "plain_tensor_attribute"]
# culprit = "self.shadow[name]"
# also_culprit = ["self.shadow", "ema.shadow", "ema.shadow['0.weight']"]
# culprit_cell = 2
# origin_cell = 3
# also_cells = []
# origin = "ema = EMA(net, 0.9)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "earlier cell"
# visible = "only in an object attribute"
# expect_after_fix = "all(v.device == torch.device(DEV) for v in ema.shadow.values()) and val.device == torch.device(DEV)"
# # finetune() starts from the pretrained weights each time, so cell 5 can be run again
# [[ref_fix]]
# op = "run"
# code = "ema.shadow = {name: t.to(DEV) for name, t in ema.shadow.items()}"

# %%
import torch
from torch import nn

torch.manual_seed(7)
pretrained = nn.Sequential(nn.Linear(4, 8), nn.SELU(), nn.Linear(8, 2)).state_dict()

# %%
class EMA:
    def __init__(self, model, decay):
        self.model, self.decay = model, decay
        self.shadow, self.backup = {}, {}
        self.register()

    def register(self):
        for name, param in self.model.named_parameters():
            if param.requires_grad:
                self.shadow[name] = param.data.clone()

    def update(self):
        for name, param in self.model.named_parameters():
            if param.requires_grad:
                new_average = (1.0 - self.decay) * param.data + self.decay * self.shadow[name]
                self.shadow[name] = new_average.clone()

    def apply_shadow(self):
        for name, param in self.model.named_parameters():
            self.backup[name] = param.data
            param.data = self.shadow[name]

    def restore(self):
        for name, param in self.model.named_parameters():
            param.data = self.backup.pop(name)

# %%
net = nn.Sequential(nn.Linear(4, 8), nn.SELU(), nn.Linear(8, 2))
net.load_state_dict(pretrained)
ema = EMA(net, 0.9)

# %%
def finetune(model, batches, device):
    model.load_state_dict(pretrained)
    model.to(device)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in batches:
        loss = nn.functional.smooth_l1_loss(model(x.to(device)), y.to(device))
        opt.zero_grad()
        loss.backward()
        opt.step()
        ema.update()
    return loss.item()

# %%
finetune(net, [(torch.rand(5, 4), torch.rand(5, 2)) for _ in range(3)], DEV)
ema.apply_shadow()
with torch.no_grad():
    val = net(torch.ones(1, 4, device=DEV))
ema.restore()
