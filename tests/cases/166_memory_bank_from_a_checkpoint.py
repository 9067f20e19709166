# id = "166"
# cause = "checkpoint_location"
# also_causes = ["plain_tensor_attribute"]
# culprit = "self.queue"
# also_culprit = ["moco.queue", "moco", "ckpt['queue']"]
# culprit_cell = 2
# origin_cell = 2
# also_cells = [3, 4]
# origin = "ckpt = torch.load(path, map_location=\"cpu\", weights_only=True)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 4
# fix_site = "checkpoint load"
# visible = "only in an object attribute"
# expect_after_fix = "out.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "        self.enc.to(device)\n"
# new = "        self.enc.to(device)\n        self.queue = self.queue.to(device)\n"
# [rerun]
# cells = [2, 3, 4]

# %%
import os, tempfile
import torch, torch.nn as nn, torch.nn.functional as F
ckpt_path = os.path.join(tempfile.gettempdir(), "moco.pth")
torch.save({"epoch": 4, "queue": F.normalize(torch.randn(4, 8), dim=0), "ptr": 0}, ckpt_path)

# %%
class MoCo:
    def __init__(self, dim=4, K=8):
        self.enc = nn.Linear(6, dim)
        self.queue = None
    def load(self, path):
        ckpt = torch.load(path, map_location="cpu", weights_only=True)
        self.queue, self.ptr = ckpt["queue"], ckpt["ptr"]
        return ckpt["epoch"]
    def to(self, device):
        self.enc.to(device)
        return self
    def logits(self, xq, xk):
        q, k = F.normalize(self.enc(xq)), F.normalize(self.enc(xk))
        pos = (q * k).sum(1, keepdim=True)
        neg = q @ self.queue
        return torch.cat([pos, neg], 1) / 0.07

# %%
moco = MoCo()
start = moco.load(ckpt_path)
moco.to(DEV)

# %%
xs = torch.randn(2, 3, 6).to(DEV)
out = moco.logits(*xs)
