"""A small convolutional network learns ten kinds of pictures; trained, checkpointed, resumed, tested."""

# %%
import copy
import io

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset, random_split

device = torch.device(DEV)
print("using", device)

# %%
# ten patterns, and noisy pictures of them
patterns = torch.rand(10, 1, 12, 12)
labels = torch.randint(0, 10, (320,))
images = patterns[labels] + 0.2 * torch.randn(320, 1, 12, 12)
train_set, test_set = random_split(TensorDataset(images, labels), [256, 64])
train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
test_loader = DataLoader(test_set, batch_size=64)
mean, std = images.mean(), images.std()


# %%
class Normalize(nn.Module):
    def __init__(self, mean, std):
        super().__init__()
        self.register_buffer("mean", mean)
        self.register_buffer("std", std)

    def forward(self, x):
        return (x - self.mean) / self.std


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.normalize = Normalize(mean, std)
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
        self.bn1 = nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1)
        self.dropout = nn.Dropout(0.25)
        self.fc1 = nn.Linear(16 * 3 * 3, 32)
        self.fc2 = nn.Linear(32, 10)

    def forward(self, x):
        x = self.normalize(x)
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = self.dropout(torch.flatten(x, 1))
        return self.fc2(F.relu(self.fc1(x)))


model = Net().to(device)
class_weights = torch.bincount(labels, minlength=10).float().reciprocal()
criterion = nn.CrossEntropyLoss(weight=class_weights.to(device), label_smoothing=0.05)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.8)
losses = []


# %%
def train(epoch):
    model.train()
    running = torch.zeros((), device=device)
    for data, target in train_loader:
        data, target = data.to(device), target.to(device)
        optimizer.zero_grad()
        loss = criterion(model(data), target)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        running += loss.detach()
        losses.append(loss.item())
    scheduler.step()
    print(f"epoch {epoch}: {running.item() / len(train_loader):.4f}")


for epoch in range(2):
    train(epoch)

# %%
checkpoint = io.BytesIO()
torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 2}, checkpoint)
best = copy.deepcopy(model)

# %%
checkpoint.seek(0)
state = torch.load(checkpoint, map_location=device, weights_only=True)
model.load_state_dict(state["model"])
optimizer.load_state_dict(state["optimizer"])
train(state["epoch"])


# %%
@torch.no_grad()
def evaluate(net):
    net.eval()
    correct = 0
    confusion = torch.zeros(10, 10, dtype=torch.long, device=device)
    for data, target in test_loader:
        data, target = data.to(device), target.to(device)
        prediction = net(data).argmax(1)
        correct += prediction.eq(target).sum().item()
        confusion.index_put_((target, prediction), torch.ones_like(target), accumulate=True)
    return correct / len(test_set), confusion


accuracy, confusion = evaluate(model)
before, _ = evaluate(best)
losses += [accuracy, before]
recall = confusion.diag() / confusion.sum(1).clamp(min=1)
print("accuracy", accuracy, "recall", recall.cpu().numpy().round(2))
