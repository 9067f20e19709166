# id = "327"
# cause = "must_be_cpu"
# also_causes = ["checkpoint_location"]
# culprit = "rng['torch']"
# also_culprit = ["state", "state['rng']", "state['rng']['torch']", "rng", "snap['rng']", "snap['rng']['torch']", "snap"]
# culprit_cell = 3
# origin_cell = 5
# also_cells = []
# origin = "snap = torch.load(ckpt_path, map_location=DEV, weights_only=False)"
# culprit_device = "DEV"
# other_device = "HOST"
# fail_cell = 5
# fix_site = "checkpoint load"
# visible = "first user frame"
# expect_after_fix = "epoch == 2 and torch.equal(drawn, after_saving) and all(p.device == torch.device(DEV) for p in model.parameters())"
# [[ref_fix]]
# op = "replace"
# cell = 3
# old = "torch.set_rng_state(rng['torch'])"
# new = "torch.set_rng_state(rng['torch'].cpu())"
# [rerun]
# cells = [3, 5]

# %%
import os, random, tempfile
import numpy as np
import torch
from torch import nn

ckpt_path = os.path.join(tempfile.mkdtemp(), 'last.ckpt')

# %%
def save_training_state(path, model, optimizer, epoch):
    torch.save({
        'model': model.state_dict(),
        'optimizer': optimizer.state_dict(),
        'epoch': epoch,
        'rng': {'python': random.getstate(), 'numpy': np.random.get_state(), 'torch': torch.get_rng_state()},
    }, path)

# %%
def restore_rng(rng):
    random.setstate(rng['python'])
    np.random.set_state(rng['numpy'])
    torch.set_rng_state(rng['torch'])

def restore_training_state(state, model, optimizer):
    model.load_state_dict(state['model'])
    optimizer.load_state_dict(state['optimizer'])
    restore_rng(state['rng'])
    return state['epoch'] + 1

# %%
model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 1)).to(DEV)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(2):
    loss = model(torch.rand(8, 4).to(DEV)).square().mean()
    optimizer.zero_grad(); loss.backward(); optimizer.step()
save_training_state(ckpt_path, model, optimizer, epoch)
after_saving = torch.rand(5)       # what an uninterrupted run would draw next

# %%
snap = torch.load(ckpt_path, map_location=DEV, weights_only=False)
epoch = restore_training_state(snap, model, optimizer)
drawn = torch.rand(5)
