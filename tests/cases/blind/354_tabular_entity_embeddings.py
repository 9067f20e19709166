# id = "354"
# cause = "module_in_plain_container"
# also_causes = []
# culprit = "emb"
# also_culprit = ["self.embeds", "self.embeds[0]", "clf.embeds", "clf.embeds[0]", "clf.embeds[0].weight", "self.embeds[0].weight"]
# culprit_cell = 3
# origin_cell = 3
# also_cells = []
# origin = "self.embeds = [nn.Embedding(c, d) for c, d in emb_szs]"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "class __init__"
# visible = "only in an object attribute"
# expect_after_fix = "preds.device == torch.device(DEV)"
# [[ref_fix]]
# op = "replace"
# cell = 3
# old = "self.embeds = [nn.Embedding(c, d) for c, d in emb_szs]"
# new = "self.embeds = nn.ModuleList([nn.Embedding(c, d) for c, d in emb_szs])"
# [rerun]
# cells = [3, 4, 5]

# %%
import numpy as np
import torch
import torch.nn as nn

# %%
# House prices, cut down to three categorical and two continuous columns
rng = np.random.RandomState(3)
cat_dims = {'Neighborhood': 7, 'Quality': 4, 'MSZoning': 3}
cats = np.stack([rng.randint(0, n, 20) for n in cat_dims.values()], 1)
conts = rng.rand(20, 2).astype('float32')
emb_szs = [(n, min(50, (n + 1) // 2)) for n in cat_dims.values()]
print(emb_szs)

# %%
class TabularModel(nn.Module):
    def __init__(self, emb_szs, n_cont, layers, out_sz=1, p=0.0):
        super().__init__()
        self.embeds = [nn.Embedding(c, d) for c, d in emb_szs]
        self.emb_drop = nn.Dropout(p)
        self.bn_cont = nn.BatchNorm1d(n_cont)
        n_in, blocks = sum(d for _, d in emb_szs) + n_cont, []
        for n_out in layers:
            blocks += [nn.Linear(n_in, n_out), nn.ReLU(inplace=True), nn.BatchNorm1d(n_out)]
            n_in = n_out
        self.layers = nn.Sequential(*blocks, nn.Linear(n_in, out_sz))

    def forward(self, x_cat, x_cont):
        x = [emb(x_cat[:, i]) for i, emb in enumerate(self.embeds)]
        x = self.emb_drop(torch.cat(x, 1))
        return self.layers(torch.cat([x, self.bn_cont(x_cont)], 1))

# %%
clf = TabularModel(emb_szs, conts.shape[1], [10, 5]).to(DEV)
x_cat = torch.as_tensor(cats, dtype=torch.long, device=DEV)
x_cont = torch.as_tensor(conts, device=DEV)

# %%
clf.eval()
with torch.no_grad():
    preds = clf(x_cat, x_cont)
