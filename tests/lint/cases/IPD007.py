from typing import Optional

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import DataLoader

device = torch.device("cuda")
train_loader = DataLoader([])
net = torch.nn.Linear(2, 2)
net.to(device)
x = torch.zeros(3)
x.to(device)  # here
x = x.to(device)
for images, labels in train_loader:
    images.to(device)  # here
    labels = labels.to(device)
for step, (images, labels) in enumerate(train_loader):
    labels.cuda(non_blocking=True)  # here
for batch in train_loader:
    batch["image"].to(device)  # here
    batch[0].to(device)  # here
for batch in train_loader:
    batch.to(device)  # here
    print(batch.shape)
for encoding in train_loader:
    encoding.to(device)  # some move in place
    print(encoding["ids"].shape)


def of_anything(thing):
    thing.to(device)


def of_a_model(model, data):
    model.to(device)
    data.to(device)
    return model(data, data.x.shape)


def annotated(x: torch.Tensor, mask: Optional[Tensor], model: nn.Module, many: list[Tensor], sets: TensorDataset):
    x.to(device)  # here
    mask.cuda()  # here
    model.to(device)
    many.to(device)
    sets.to(device)


def used_as_tensor(inputs, target, weight):
    inputs.to(device)  # here
    target.to(device)  # here
    weight.to(device)  # here
    print(inputs.shape)
    return F.cross_entropy(inputs * 2, target) * weight


def moved_again(inputs):
    inputs = inputs.to(device)
    return inputs.shape


for parameter in net.parameters():
    parameter.to(device)  # here
    print(parameter.numel())
for layer in [net]:
    layer.to(device)
for parameter in net.parameters():
    with pytest.raises(RuntimeError):
        parameter.to("nowhere")
    print(parameter.numel())
for module in net.children():
    module.to(device)
    module.requires_grad_(False)
