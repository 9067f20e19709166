# id = "383"
# cause = "index_device"
# also_causes = ["plain_tensor_attribute"]
# culprit = "cls.PALETTE"
# also_culprit = ["ToyStreets.PALETTE", "self.data.PALETTE", "dataset.PALETTE"]
# culprit_cell = 2
# origin_cell = 2
# also_cells = [4, 5]
# origin = "PALETTE = torch.tensor([[128, 64, 128], [70, 130, 180], [0, 0, 142], [220, 20, 60]]) / 255"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "class of the notebook"
# visible = "only in an object attribute"
# expect_after_fix = "len(callback.sheets) == 1 and sheet.device == torch.device(DEV) and sheet.shape == (2, 3, 8, 8)"
# # the colours are mixed with pictures on the card in the next line: bringing the class map home only moves the error there
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "cls.PALETTE[ids]"
# new = "cls.PALETTE.to(ids.device)[ids]"
# [rerun]
# cells = [2, 4, 5]

# %%
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

# %%
class ToyStreets(Dataset):
    CLASSES = "road", "sky", "car", "rider"
    PALETTE = torch.tensor([[128, 64, 128], [70, 130, 180], [0, 0, 142], [220, 20, 60]]) / 255

    def __init__(self, n=4, size=8):
        g = torch.Generator().manual_seed(n)
        self.images = torch.rand(n, 3, size, size, generator=g)
        self.labels = (self.images[:, :2].sum(1) * 1.99).long()

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return self.images[i], self.labels[i]

    @classmethod
    def paint(cls, ids):
        return cls.PALETTE[ids].movedim(-1, -3)

# %%
class Head(nn.Sequential):
    def __init__(self, n):
        super().__init__(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(inplace=True), nn.Conv2d(8, n, 1))

def fit(net, loader, epochs, callbacks=()):
    device = next(net.parameters()).device
    opt = torch.optim.SGD(net.parameters(), lr=0.05)
    for epoch in range(epochs):
        for img, lab in loader:
            img, lab = img.to(device), lab.to(device)
            logits = net(img)
            loss = nn.functional.cross_entropy(logits, lab)
            opt.zero_grad(); loss.backward(); opt.step()
        for cb in callbacks:
            cb.on_epoch_end(epoch, img, logits.detach())

# %%
class Overlay:
    def __init__(self, data, every=2, alpha=0.6):
        self.data, self.every, self.alpha, self.sheets = data, every, alpha, []

    def on_epoch_end(self, epoch, img, logits):
        if (epoch + 1) % self.every:
            return
        colours = self.data.paint(logits.argmax(1))
        self.sheets.append(self.alpha * colours + (1 - self.alpha) * img)

dataset = ToyStreets()
loader = DataLoader(dataset, batch_size=2)
net = Head(len(dataset.CLASSES)).to(DEV)
fit(net, loader, epochs=1)

# %%
callback = Overlay(dataset)
net = Head(len(dataset.CLASSES)).to(DEV)
fit(net, loader, epochs=2, callbacks=[callback])
sheet = callback.sheets[-1]
