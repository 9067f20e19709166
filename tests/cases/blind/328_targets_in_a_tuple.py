# id = "328"
# cause = "nested_batch_partly_moved"
# also_causes = ["label_not_moved", "input_not_moved"]
# culprit = "t['boxes']"
# also_culprit = ["t", "targets", "targets[0]", "targets[0]['boxes']", "batch['targets']", "batch", "obj", "t['labels']"]
# culprit_cell = 4
# origin_cell = 2
# also_cells = [5, 3]
# origin = "if isinstance(obj, list):"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "a function in an earlier cell"
# visible = "raising frame"
# expect_after_fix = "all(v.device == torch.device(DEV) for v in losses.values()) and sorted(losses) == ['box', 'cls']"
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "if isinstance(obj, list):"
# new = "if isinstance(obj, (list, tuple)):"
# [rerun]
# cells = [2, 5]

# %%
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader

# %%
def move_to(obj, device):
    """recursively"""
    if torch.is_tensor(obj):
        return obj.to(device)
    if isinstance(obj, dict):
        return {k: move_to(v, device) for k, v in obj.items()}
    if isinstance(obj, list):
        return [move_to(v, device) for v in obj]
    return obj          # ids, file names, ...

# %%
class Pedestrians(torch.utils.data.Dataset):
    def __len__(self):
        return 4
    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        n = 1 + i % 3
        xy, wh = torch.rand(n, 2, generator=g), torch.rand(n, 2, generator=g)
        return torch.rand(3, 8, 8, generator=g), {'boxes': torch.cat([xy, wh], 1), 'labels': torch.ones(n, dtype=torch.long), 'file': f'{i:04}.png'}

def collate(samples):
    images, targets = zip(*samples)
    return {'images': torch.stack(images), 'targets': targets}

# %%
class SlotDetector(nn.Module):
    """k slots an image, slot j answers for the j-th box"""
    def __init__(self, k=3, n_classes=2):
        super().__init__()
        self.k = k
        self.trunk = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.box, self.cls = nn.Linear(8, 4 * k), nn.Linear(8, n_classes * k)

    def forward(self, images, targets):
        z = self.trunk(images)
        boxes, logits = self.box(z).sigmoid().unflatten(1, (self.k, 4)), self.cls(z).unflatten(1, (self.k, -1))
        out = {'box': 0.0, 'cls': 0.0}
        for b, l, t in zip(boxes, logits, targets):
            n = len(t['boxes'])
            out['box'] = out['box'] + F.l1_loss(b[:n], t['boxes'])
            out['cls'] = out['cls'] + F.cross_entropy(l[:n], t['labels'])
        return out

det = SlotDetector().to(DEV)

# %%
for batch in DataLoader(Pedestrians(), batch_size=2, collate_fn=collate):
    batch = move_to(batch, DEV)
    losses = det(**batch)
    sum(losses.values()).backward()
