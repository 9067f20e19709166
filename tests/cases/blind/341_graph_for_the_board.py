# id = "341"
# cause = "input_not_moved"
# also_causes = []
# culprit = "sample_images"
# also_culprit = ["input_to_model", "args[0]", "args", "train_loader", "images"]
# culprit_cell = 5
# origin_cell = 5
# also_cells = [2, 3]
# origin = "sample_images, sample_labels = next(iter(train_loader))"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "cell line that failed"
# visible = "first user frame"
# expect_after_fix = "graph_out.device == torch.device(DEV) and len(writer.nodes) == 5"
# # writer.nodes: the five leaves, each seen once; a failed call leaves its hooks behind, so begin() clears them
# [[ref_fix]]
# op = "replace"
# cell = 5
# old = "writer.add_graph(net, sample_images)"
# new = "writer.add_graph(net, sample_images.to(DEV))"

# %%
import torch
from torch import nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

# %%
# ---- data (fake Fashion-MNIST, 8x8) ----
images = torch.rand(32, 1, 8, 8)
labels = torch.randint(0, 10, (32,))
train_loader = DataLoader(TensorDataset(images, labels), batch_size=8)

# %%
class BoardWriter:
    """the two calls of SummaryWriter that I use, without the dependency"""
    def __init__(self, logdir):
        self.logdir, self.nodes, self.handles = logdir, [], []

    def begin(self):
        for h in self.handles:
            h.remove()
        self.nodes, self.handles = [], []

    def add_graph(self, model, input_to_model):
        self.begin()
        for name, mod in model.named_modules():
            if not list(mod.children()):
                self.handles.append(mod.register_forward_hook(
                    lambda m, i, o, name=name: self.nodes.append((name, tuple(o.shape)))))
        args = input_to_model if isinstance(input_to_model, (tuple, list)) else (input_to_model,)
        with torch.no_grad():
            return model(*args)

writer = BoardWriter('runs/fashion_mnist_experiment_1')

# %%
net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 16), nn.Linear(16, 10)).to(DEV)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
for x, y in train_loader:
    x, y = x.to(DEV), y.to(DEV)
    optimizer.zero_grad()
    F.cross_entropy(net(x), y).backward()
    optimizer.step()

# %%
# the Graphs tab
sample_images, sample_labels = next(iter(train_loader))
graph_out = writer.add_graph(net, sample_images)
