# id = "152"
# cause = "label_not_moved"
# also_causes = ["input_not_moved"]
# culprit = "depth"
# also_culprit = ["batch[1]", "sample[1]", "batch", "sample"]
# culprit_cell = 1
# origin_cell = 2
# also_cells = [3]
# origin = "sample = [torch.rand(2, 1, 4, 4), torch.rand(2, 1, 4, 4), {\"scene\": \"kitchen\"}]"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 3
# fix_site = "class of the notebook"
# visible = "raising frame"
# expect_after_fix = "loss.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 1
# old = "image = image.to(self.net.weight.device)"
# new = "image, depth = image.to(self.net.weight.device), depth.to(self.net.weight.device)"
# [rerun]
# cells = [1, 2, 3]

# %%
import torch
from torch import nn

class Base(nn.Module):
    def step(self, batch):
        raise NotImplementedError
    def training_step(self, batch, n):
        losses = self.step(batch)
        return sum(losses.values())

class Depth(Base):
    def __init__(self):
        super().__init__()
        self.net = nn.Conv2d(1, 1, 3, padding=1)
    def step(self, batch):
        image, depth, *_ = batch
        image = image.to(self.net.weight.device)
        pred = self.net(image)
        return dict(l1=(pred - depth).abs().mean(),
                    smooth=(pred[..., 1:] - pred[..., :-1]).abs().mean())

# %%
depth_net = Depth(); depth_net.to(DEV)
sample = [torch.rand(2, 1, 4, 4), torch.rand(2, 1, 4, 4), {"scene": "kitchen"}]

# %%
loss = depth_net.training_step(sample, 0); loss.backward()
