# id = "384"
# cause = "to_result_discarded"
# also_causes = ["label_not_moved", "nested_batch_partly_moved"]
# culprit = "gt"
# also_culprit = ["truth[0].boxes", "truth[0]", "truth", "t.boxes", "t", "truth[0].labels"]
# culprit_cell = 4
# origin_cell = 3
# also_cells = [2, 3, 5]
# origin = "inst.to(self.device)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "class of the notebook"
# visible = "first user frame"
# expect_after_fix = "losses['box'].device == torch.device(DEV) and losses['cls'].device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 3
# old = "        for inst in targets:\n            inst.to(self.device)\n        return images, targets"
# new = "        return images, [inst.to(self.device) for inst in targets]"
# [rerun]
# cells = [3, 4, 5]

# %%
import torch
import torch.nn.functional as F
from torch import nn

# %%
class Instances:
    """what is known of one picture; fields of equal length"""
    def __init__(self, size, **fields):
        self.__dict__.update(size=size, _fields=fields)

    def __getattr__(self, name):
        try:
            return self.__dict__["_fields"][name]
        except KeyError:
            raise AttributeError(name) from None

    def __len__(self):
        return len(next(iter(self._fields.values())))

    def to(self, *args, **kwargs):
        return Instances(self.size, **{k: v.to(*args, **kwargs) for k, v in self._fields.items()})

def example(n):
    return Instances((16, 16), boxes=torch.rand(n, 4) * 16, labels=torch.randint(3, (n,)))

# %%
class Meta(nn.Module):
    def __init__(self, slots=5, classes=3):
        super().__init__()
        self.slots = slots
        self.features = nn.Sequential(nn.Conv2d(3, 6, 3, 4, 1), nn.ReLU(), nn.Flatten(), nn.Linear(96, slots * 8))
        self.reg, self.cls = nn.Linear(8, 4), nn.Linear(8, classes)

    @property
    def device(self):
        return self.reg.weight.device

    def preprocess(self, batch):
        images = torch.stack([img for img, _ in batch]).to(self.device)
        targets = [t for _, t in batch]
        for inst in targets:
            inst.to(self.device)
        return images, targets

# %%
def losses_of(net, batch):
    images, truth = net.preprocess(batch)
    h = net.features(images).unflatten(1, (net.slots, 8))
    first = torch.cat([h[i, : len(t)] for i, t in enumerate(truth)])
    gt = torch.cat([t.boxes for t in truth])
    return {"box": F.l1_loss(16 * net.reg(first).sigmoid(), gt),
            "cls": F.cross_entropy(net.cls(first), torch.cat([t.labels for t in truth]))}

net = Meta().to(DEV)

# %%
losses = losses_of(net, [(torch.rand(3, 16, 16), example(n)) for n in (2, 3)])
sum(losses.values()).backward()
