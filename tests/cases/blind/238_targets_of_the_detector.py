# id = "238"
# cause = "nested_batch_partly_moved"
# also_causes = ["label_not_moved", "input_not_moved"]
# culprit = "t['boxes']"
# also_culprit = ["targets", "targets[0]", "targets[0]['boxes']", "gt", "t", "self.args", "to_dev(batch, DEV)", "batch.targets"]
# culprit_cell = 3
# origin_cell = 1
# also_cells = [1, 4]
# origin = "return obj"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 4
# fix_site = "earlier cell"
# visible = "raising frame"
# expect_after_fix = "len(history) == 2 and all(h.device == torch.device(DEV) for h in history)"
# [[ref_fix]]
# op = "replace"
# cell = 1
# old = "for o in obj)\n    return obj"
# new = "for o in obj)\n    if isinstance(obj, dict):\n        return {k: to_dev(v, device) for k, v in obj.items()}\n    return obj"
# [rerun]
# cells = [1, 2, 3, 4]

# %%
import torch
from torch import nn
from collections import namedtuple

Batch = namedtuple('Batch', 'images targets')

def to_dev(obj, device):
    """recursive .to()"""
    if hasattr(obj, 'to'):
        return obj.to(device)
    if hasattr(obj, '_fields'):
        return type(obj)(*(to_dev(o, device) for o in obj))
    if isinstance(obj, (list, tuple)):
        return type(obj)(to_dev(o, device) for o in obj)
    return obj

# %%
def fake_coco(n_batches, bs=2):
    for b in range(n_batches):
        imgs = torch.linspace(0, 1, bs * 3 * 64).view(bs, 3, 8, 8) + b
        targets = [{'image_id': b * bs + i,
                    'boxes': torch.tensor([[0., 0., 3. + i, 4.], [2., 2., 5., 7. - b]]),
                    'labels': torch.tensor([1, 2])} for i in range(bs)]
        yield Batch(imgs, targets)

# %%
class OneShotDetector(nn.Module):
    def __init__(self, n_boxes=2):
        super().__init__()
        self.backbone = nn.Sequential(nn.Conv2d(3, 4, 3, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.box = nn.Linear(4, 4 * n_boxes)

    def box_loss(self, pred, targets):
        per_image = []
        for p, t in zip(pred, targets):
            gt = t['boxes'] / 8
            per_image.append(nn.functional.smooth_l1_loss(p, gt))
        return torch.stack(per_image).mean()

    def forward(self, images, targets):
        pred = self.box(self.backbone(images)).view(len(images), -1, 4).sigmoid()
        return {'loss_box': self.box_loss(pred, targets)}

det = OneShotDetector().to(DEV)
opt = torch.optim.AdamW(det.parameters(), lr=1e-2)

# %%
history = []
for batch in fake_coco(2):
    images, targets = to_dev(batch, DEV)
    losses = det(images, targets)
    total = sum(losses.values())
    opt.zero_grad(); total.backward(); opt.step()
    history.append(total.detach())
